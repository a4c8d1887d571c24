#!/usr/bin/env bash
# Asks a newcomer's requests in a folder of small files, to be judged by reading: benches/newcomer.sh OUT [FLAGS [LIST]]
# Writes each request with its command to OUT. Nothing is judged here, and no command is run. LIST is another list of
# requests: lookups.txt has those of users in their second week.
set -euo pipefail
out=$(realpath "$1")
caro=$(realpath "${CARO:-target/release/caro}")
requests=$(realpath "${3:-$(dirname "$0")/newcomer.txt}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

mkdir -p src docs logs backup "My Photos" data/2023 data/2024
for i in 1 2 3; do
  echo "line $i TODO fix" >"src/m$i.py"
  head -c "${i}00000" /dev/zero >"data/2024/d$i.bin"
  printf '2024-0%s-10 ERROR disk full\n2024-0%s-11 INFO ok\n' "$i" "$i" >"logs/app$i.log"
done
printf 'name,age,city\nAnn,30,Rome\nBob,25,Paris\nAnn,30,Rome\n' >data/people.csv
printf 'apple\nbanana\napple\ncherry\n' >fruits.txt
printf '#!/bin/sh\necho hi\n' >run.sh
printf '{"a":1,"b":{"c":[1,2,3]}}' >conf.json
touch "My Photos/a b.jpg" "My Photos/c.JPG" notes.txt docs/readme.md docs/guide.MD
ln -s nowhere broken
git init -q .

python3 -c 'import json, sys
for line in open(sys.argv[1]):
    print(json.dumps({"request": line.strip(), "cwd": sys.argv[2]}))' "$requests" "$folder" |
  "$caro" batch ${2:-} |
  python3 -c 'import json, sys
for request, line in zip(open(sys.argv[1]), sys.stdin):
    answer = json.loads(line)
    print(request.strip(), answer.get("cmd") or answer.get("refusal"), sep="\n    ")' "$requests" >"$out"
