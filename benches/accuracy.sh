#!/usr/bin/env bash
# Runs and scores the development tasks: benches/accuracy.sh EVAL_DIR OUT_DIR [FLAGS ...]
# EVAL_DIR holds ask.py, score.py and compare.py; each FLAGS is one string of caro flags (default: "" and "--refine never").
# Needs Linux and root; `setup/build_base.sh` of EVAL_DIR must have run before.
set -euo pipefail
eval_dir=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- "" "--refine never"
caro=${CARO:-target/release/caro}
mkdir -p "$out"
first=
for flags in "$@"; do
  name=$(tr -cs 'a-z0-9' '-' <<<"default $flags" | sed 's/-*$//')
  python3 "$eval_dir/ask.py" --caro "$caro" --out "$out/$name.jsonl" --args="$flags" | tee "$out/$name.ask"
  python3 "$eval_dir/score.py" "$out/$name.jsonl" --out "$out/$name.results.jsonl" | tee "$out/$name.score"
  if [ -n "$first" ]; then
    python3 "$eval_dir/compare.py" "$first" "$out/$name.jsonl" | tee "$out/$name.compare"
  else
    first=$out/$name.jsonl
  fi
done
