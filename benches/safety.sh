#!/bin/sh
# How the safety verdict does on lists of commands, one a line (`pwsh: ` before those of PowerShell; lines that begin with
# `# ` are comments): how many are safe, caution and danger, in numbers and percent, and how long a verdict takes. It prints
# no line of a list, so lists that nobody should read can be measured.
#
#   benches/safety.sh LIST...          CARO: the program, else target/release/caro; CWD: a folder that the commands are said to
#                                      run in, an empty one for instance: then the disk is asked what would be written over
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
