#!/usr/bin/env python3
"""The same tasks in the words of people who ask: polite.py OUT_DIR SUITE.toml ...

Writes each suite to OUT_DIR with "how do I", "can you", "please" ... in turn before the requests that begin with a verb, and the ids of these to
OUT_DIR/ids.json. polite.py --compare A.json B.json IDS.json holds two reports of `caro eval --json` against each other on them.
"""
import json, pathlib, re, sys

OPENINGS = ["how do I", "can you", "please", "how can i", "i want to", "could you please", "how do you", "I need to",
            "what's the command to", "is there a way to"]
VERBS = set("""add append change convert copy count create cut delete display drop extract find get give join keep list make
merge move number print put remove rename replace reverse search set show sort split swap take tell turn write""".split())


def rewrite(suite, out):
    ids, lines, current = [], [], None
    for line in suite.read_text().splitlines():
        if m := re.match(r'id = "(.*)"', line):
            current = m[1]
        m = re.match(r"""request = (["'])(.*)(["'])$""", line)
        if m and m[2].split()[0].lower() in VERBS:
            line = f"request = {m[1]}{OPENINGS[len(ids) % len(OPENINGS)]} {m[2]}{m[3]}"
            ids.append(current)
        lines.append(line)
    (out / suite.name).write_text("\n".join(lines) + "\n")
    return ids


def compare(a, b, ids):
    ids = json.loads(pathlib.Path(ids).read_text())
    passed = [{t["id"] for t in json.loads(pathlib.Path(f).read_text())["tasks"] if t["verdict"] == "passed"} for f in (a, b)]
    one, other = ({i for i in ids if i in p} for p in passed)
    print(f"{len(ids)} tasks: {len(one)} and {len(other)} pass; only the first {sorted(one - other)}, only the second {sorted(other - one)}")


if sys.argv[1:2] == ["--compare"] and len(sys.argv) == 5:
    compare(*sys.argv[2:])
elif len(sys.argv) > 2 and not sys.argv[1].startswith("-"):
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    ids = [i for suite in sys.argv[2:] for i in rewrite(pathlib.Path(suite), out)]
    (out / "ids.json").write_text(json.dumps(ids))
    print(f"{len(ids)} requests reworded")
else:
    sys.exit(__doc__)
