#!/bin/sh
# Measures the safety verdict on lists of commands, one a line (`pwsh: ` before those of PowerShell; lines that begin
# with `# ` are comments): the number and percentage of safe, caution and danger, and the time of a verdict. It prints
# no line of a list, so that lists which must stay unread can be measured.
#
#   benches/safety.sh LIST...          CARO: the binary (default target/release/caro); CWD: the folder in which commands
#                                      would run, for instance an empty one: files they would overwrite are sought there
set -eu
caro=${CARO:-target/release/caro}
for list in "$@"; do
    printf '%s\n' "$list"
    python3 -c '
import json, os, sys
place = {"cwd": os.environ["CWD"]} if os.environ.get("CWD") else {}
for line in open(sys.argv[1], encoding="utf-8"):
    line = line.rstrip("\n")
    if not line.strip() or line.startswith("# "):
        continue
    shell = "powershell" if line.startswith("pwsh: ") else "bash"
    print(json.dumps({"command": line.removeprefix("pwsh: "), "shell": shell, **place}))
' "$list" | "$caro" check --jsonl --summary --fail-on never
done
