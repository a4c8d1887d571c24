#!/usr/bin/env bash
# The tests that take too long for every run of the suite, before accuracy work lands: benches/full.sh [FILTER ...]
# Every pair of the library in bash and in busybox, the cases of strangers, the whole of `caro bench`, and
# more of runs, of the loop, of refusals and of answers for macOS on the real model.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- library:: field:: bench:: agent_real:: perpetual_real:: targets:: refusals:: demos::
CARO_REQUIRE_MODEL=1 cargo test --release --locked --test suite -- --ignored --nocapture "$@"
