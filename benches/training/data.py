#!/usr/bin/env python3
"""Reads the training pairs, splits them by pair and leaves out those near a task: data.py [--report]

Examples come from platform-rules/library and platform-rules/training: every wording of every pair for every target it
has a command for, and the lines that are no request. Prints counts; `--report` also prints what was left out. The
tasks themselves are never printed.
"""
import argparse, glob, hashlib, json, os, re, sys, tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSAL = "# not a shell task"
# src/command/prompt.rs has the same sentence; a test of the suite compares the two.
PERSONA = "Answer each request with one {shell} command for {system}, on one line. If a request is no task for a shell, answer: " + REFUSAL
SYSTEMS = {
    "linux-gnu": ("bash", "Linux (GNU tools)"),
    "linux-busybox": ("POSIX sh", "Linux (busybox)"),
    "macos-bsd": ("zsh", "macOS (BSD tools)"),
    "freebsd": ("POSIX sh", "FreeBSD (BSD tools)"),
    "windows": ("PowerShell", "Windows"),
    "fish": ("fish shell", "Linux (GNU tools)"),
}
# The field of a pair with the command for a target, and the fields that replace it if it is absent.
FIELDS = {"macos-bsd": ("macos", "cmd"), "freebsd": ("freebsd", "macos", "cmd"), "linux-busybox": ("busybox", "cmd"),
          "windows": ("powershell",), "fish": ("fish",)}
NEAR = 0.6


@dataclass(frozen=True)
class Example:
    """A request for one target, and its answer."""
    target: str
    request: str
    answer: str
    pair: str
    source: str

    @property
    def key(self):
        return hashlib.sha1(f"{self.target}|{self.request}|{self.answer}".encode()).hexdigest()[:16]


def persona(target):
    shell, system = SYSTEMS[target]
    return PERSONA.format(shell=shell, system=system)


def tokens(text):
    return frozenset(re.findall(r"\w+", text.lower()))


def jaccard(a, b):
    return len(a & b) / max(1, len(a | b))


def command_of(pair, target):
    """Returns a pair's command for a target, or None."""
    if "target" in pair:
        return pair["cmd"] if pair["target"] == target else None
    if target == "linux-gnu":
        return pair["cmd"] or None
    for field in FIELDS[target]:
        if field in pair:
            return pair[field] or None
    return None


def pairs():
    """Yields (source file, pair) for all pairs."""
    for folder in ("library", "training"):
        for path in sorted(glob.glob(f"{ROOT}/platform-rules/{folder}/*.toml")):
            try:
                content = tomllib.loads(Path(path).read_text())
            except tomllib.TOMLDecodeError as error:
                print(f"{path}: {error}", file=sys.stderr)  # a file that is just being written is read next time
                continue
            for pair in content.get("pair", []):
                if pair.get("request") and "cmd" in pair:
                    yield f"{folder}/{Path(path).stem}", pair


def refusals():
    path = ROOT / "platform-rules/training/refusals.toml"
    try:
        return tomllib.loads(path.read_text())["lines"] if path.exists() else []
    except tomllib.TOMLDecodeError:
        return []


def tasks():
    """Returns the token sets of all requests used in measurements. They are only compared, never printed."""
    found = []
    for path in glob.glob(f"{ROOT}/benches/tasks/*.toml"):
        found += [tokens(t["request"]) for t in tomllib.loads(Path(path).read_text())["task"]]
    lists = [*glob.glob(f"{ROOT}/benches/lists/*.txt"), f"{ROOT}/tests/refusals.txt", f"{ROOT}/tests/macos.txt", f"{ROOT}/benches/requests.txt"]
    for path in lists:
        if os.path.exists(path):
            found += [tokens(line.split("\t")[0]) for line in Path(path).read_text().splitlines() if line.strip() and line[0] != "#"]
    for name in ("eval/dev.jsonl", "field/cases.jsonl"):
        path = ROOT.parent / "shared" / name
        if path.exists():
            rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
            found += [tokens(row.get("prompt") or row["request"]) for row in rows]
    return [f for f in found if f]


def side(command):
    """Returns train, validation or test, by the command without names and numbers: near-duplicates are on one side."""
    shape = re.sub(r"[\w./-]*[\d.][\w./-]*|'[^']*'|\"[^\"]*\"", "#", command)
    part = int(hashlib.sha1(shape.encode()).hexdigest(), 16) % 100
    return "validation" if part < 3 else "test" if part < 6 else "train"


def near(texts, measured):
    """True if one of the texts is near one of the measured requests."""
    return any(jaccard(t, m) >= NEAR for t in map(tokens, texts) for m in measured if t)


def examples():
    """Returns {side: [Example]}, and [(wording, source)] of what was left out."""
    measured = tasks()
    sides, left_out = {"train": [], "validation": [], "test": []}, []
    for source, pair in pairs():
        wordings = [pair["request"], *pair.get("also", [])]
        if near(wordings, measured):
            left_out.append((pair["request"], source))
            continue
        part, own = side(pair["cmd"]), hashlib.sha1((pair["request"] + pair["cmd"]).encode()).hexdigest()[:12]
        for target in SYSTEMS:
            if command := command_of(pair, target):
                sides[part] += [Example(target, w, command, own, source) for w in wordings]
    # of two answers to the same words the later one is used: `training` comes after `library`, and is plainer
    for part, found in sides.items():
        sides[part] = list({(e.target, " ".join(re.findall(r"\w+", e.request.lower())) or e.request): e for e in found}.values())
    for line in refusals():
        if near([line], measured) and len(tokens(line)) > 2:
            left_out.append((line, "refusals"))
            continue
        # refusals do not depend on the system: half of the lines are for Linux, the rest for all targets
        others = list(SYSTEMS)
        number = int(hashlib.sha1(line.encode()).hexdigest(), 16)
        target = others[number // 2 % len(others)] if number % 2 else "linux-gnu"
        sides[side(line)].append(Example(target, line, REFUSAL, "refusal", "training/refusals"))
    return sides, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--report", action="store_true", help="print what was left out, too")
    args = parser.parse_args()
    sides, left_out = examples()
    for part, found in sides.items():
        by = {}
        for e in found:
            by[e.target] = by.get(e.target, 0) + 1
        print(f"{part}: {len(found)} examples of {len({e.pair for e in found})} pairs; {by}")
    if args.report:
        print("\n".join(f"left out, near a task: {source}: {wording}" for wording, source in left_out))
    print(f"{len(left_out)} pairs or lines left out")


if __name__ == "__main__":
    main()
