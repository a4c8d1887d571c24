#!/usr/bin/env python3
"""Rewords the requests of tasks: wording.py polite|slips OUT_DIR SUITE.toml ...

`polite` puts "how do I", "can you", "please" ... in turn before the requests that begin with a verb; `slips` puts a
typo into one plain word of every request: a doubled, missing or swapped letter (the same ones each time). Writes the
suites to OUT_DIR, and the ids of the changed tasks to OUT_DIR/ids.json. wording.py compare A.json B.json IDS.json
compares two reports of `caro eval --json` on these tasks.
"""
import json, pathlib, random, re, sys

OPENINGS = ["how do I", "can you", "please", "how can i", "i want to", "could you please", "how do you", "I need to",
            "what's the command to", "is there a way to"]
VERBS = set("""add append change convert copy count create cut delete display drop extract find get give join keep list make
merge move number print put remove rename replace reverse search set show sort split swap take tell turn write""".split())


def polite(request, number):
    return f"{OPENINGS[number % len(OPENINGS)]} {request}" if request.split()[0].lower() in VERBS else request


def slip(request, number):
    draw = random.Random(number)
    # without quoted text; the pattern excludes parts of paths
    open_text = re.sub(r"(\\?[\"'`]).*?\1", lambda quoted: " " * len(quoted[0]), request)
    words = list(re.finditer(r"(?<![\w./~-])[a-z]{5,}(?![\w/.-])", open_text))
    if not words:
        return request
    word = draw.choice(words)
    at = word.start() + draw.randrange(1, len(word[0]) - 2)
    a, b = request[at], request[at + 1]
    return request[:at] + draw.choice([b + a, b, a + a + b]) + request[at + 2:]


def reword(suite, out, change, ids):
    lines, current, changed = [], None, 0
    for number, line in enumerate(suite.read_text().splitlines()):
        if m := re.match(r'id = "(.*)"', line):
            current = m[1]
        if m := re.match(r"""request = (["'])(.*)(["'])$""", line):
            request = change(m[2], changed if change is polite else number)
            if request != m[2]:
                ids.append(current)
                changed += 1
            line = f"request = {m[1]}{request}{m[3]}"
        lines.append(line)
    (out / suite.name).write_text("\n".join(lines) + "\n")


def compare(a, b, ids):
    ids = json.loads(pathlib.Path(ids).read_text())
    passed = [{t["id"] for t in json.loads(pathlib.Path(f).read_text())["tasks"] if t["verdict"] == "passed"} for f in (a, b)]
    one, other = ({i for i in ids if i in p} for p in passed)
    print(f"{len(ids)} tasks: {len(one)} and {len(other)} pass; only the first {sorted(one - other)}, only the second {sorted(other - one)}")


if len(sys.argv) == 5 and sys.argv[1] == "compare":
    compare(*sys.argv[2:])
elif len(sys.argv) > 3 and sys.argv[1] in ("polite", "slips"):
    out, changed = pathlib.Path(sys.argv[2]), []
    out.mkdir(parents=True, exist_ok=True)
    for suite in sys.argv[3:]:
        reword(pathlib.Path(suite), out, polite if sys.argv[1] == "polite" else slip, changed)
    (out / "ids.json").write_text(json.dumps(changed))
    print(f"{len(changed)} requests reworded")
else:
    sys.exit(__doc__)
