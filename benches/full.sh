#!/usr/bin/env bash
# Runs the tests that take too long for the suite, before accuracy work lands: benches/full.sh [FILTER ...]
# Every pair of the library in bash and in busybox, the field cases, all of `caro bench`, and all cases of agent runs,
# the loop, refusals, demos and answers for macOS on the real model.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- library:: field:: bench:: agent_real:: perpetual_real:: targets:: refusals:: demos::
CARO_REQUIRE_MODEL=1 cargo test --release --locked --test suite -- --ignored --nocapture "$@"
