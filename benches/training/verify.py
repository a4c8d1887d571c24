#!/usr/bin/env python3
"""Checks files of request and command pairs: verify.py FILE.toml ... [--against DIR ...]

Checks for each pair that its fields are known, every text is one trimmed line, no wording occurs twice (in these files
or those of --against), and the command parses in bash. Then runs the command in a copy of the library's fixture tree
(tests/library/fixture.sh) in a sandbox without network, and compares its exit status, its output and the files it
leaves with those the pair expects. `busybox` variants run with busybox's programs only. `root = true` runs as root of
the sandbox. A pair with `run = "no: why"` is only parsed.

Prints the faults, then the counts. Exit status 1 if there are faults.
Needs bubblewrap, busybox and bash.
"""
import argparse, glob, hashlib, json, os, re, shlex, shutil, subprocess, sys, tempfile, tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from data import tokens

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {"request", "cmd", "macos", "freebsd", "busybox", "powershell", "fish", "run", "dir", "before", "out", "like", "then", "risk"}
OTHERS = {"also", "lines", "root", "code", "target"}
TARGETS = {"linux-gnu", "linux-busybox", "macos-bsd", "freebsd", "windows", "fish"}
TOPS = ("srv", "opt", "data", "backup")


def shape(pair):
    """Yields the faults in the form of a pair."""
    for key in pair:
        if key not in TEXTS | OTHERS:
            yield f"unknown field {key}"
    if not pair.get("request"):
        yield "no request"
    if "cmd" not in pair:
        yield "no cmd"
    texts = [pair.get("request", ""), *pair.get("also", [])]
    for key in ("cmd", "macos", "freebsd", "busybox", "powershell", "fish"):
        if pair.get(key):
            texts.append(pair[key])
    for text in texts:
        if not text or text != text.strip() or "\n" in text:
            yield f"not one trimmed line: {text!r}"
    if pair.get("target") and pair["target"] not in TARGETS:
        yield f"unknown target {pair['target']}"
    run = pair.get("run")
    if run is not None and (not run.startswith("no: ") or len(run) < 8):
        yield 'run says no reason ("no: why")'
    judged = any(k in pair for k in ("out", "lines", "like", "then"))
    if run is None and not judged and pair.get("cmd"):
        yield "nothing judges it: out, lines, like or then (or run = \"no: why\")"


def box(tree, bash, root):
    """Returns the command line of a sandbox in which the tree is mounted where the pairs expect it."""
    line = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]
    for name in ("bin", "sbin", "lib", "lib64"):
        line += ["--symlink", f"usr/{name}", f"/{name}"]
    line += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/var/log",
             "--bind", f"{tree}/work", "/work", "--bind", f"{tree}/home", "/home"]
    for top in TOPS:
        line += ["--bind", f"{tree}/{top}", f"/{top}"]
    if not root:
        line += ["--uid", "1000", "--gid", "1000"]
    fixed = {"HOME": "/home/ana", "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "dumb", "GIT_CONFIG_NOSYSTEM": "1", "EDITOR": "true",
             "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "USER": "ana", "GIT_CONFIG_COUNT": "1",
             "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    line += ["--clearenv"]
    for k, v in fixed.items():
        line += ["--setenv", k, v]
    return line + ["bash", "-c", bash]


def execute(tree, pair, command):
    """Runs a command; returns how its result differs from the expected one, or None."""
    place = f"cd /work/{pair.get('dir', '')} || exit 99\n"
    run = lambda text: subprocess.run(box(tree, place + text, pair.get("root", False)), capture_output=True, timeout=20,
                                      stdin=subprocess.DEVNULL)
    try:
        if pair.get("before"):
            run(pair["before"])
        ran = run(command)
    except subprocess.TimeoutExpired:
        return "runs for more than 20 s"
    out = ran.stdout.decode(errors="replace").rstrip("\n")
    told = f"printed {out[:400]!r}, errors {ran.stderr.decode(errors='replace')[:300]!r}"
    if missing := re.search(r"(\S+): (?:command )?not found", ran.stderr.decode(errors="replace")):
        return f"missing {missing[1]}"
    if ran.returncode != pair.get("code", 0):
        return f"exit status {ran.returncode}; {told}"
    if ran.stderr:
        return told
    if "out" in pair and pair["out"].rstrip("\n") != out:
        return told
    if "lines" in pair and sorted(out.split("\n")) != sorted(pair["lines"]):
        return told
    if "like" in pair and not re.fullmatch(pair["like"], out, re.S):
        return told
    if "then" in pair and run(pair["then"]).returncode != 0:
        return f"afterwards not so: {pair['then']}; {told}"
    return None


def judge(job):
    """Runs one pair in a fixture of its own; returns the fault, if any, and whether it was run."""
    name, pair, master, base, i, busybox = job
    command = pair.get("busybox", pair["cmd"]) if busybox else pair["cmd"]
    if pair.get("run") or not command or pair.get("target", "linux-gnu") not in ("linux-gnu", "linux-busybox"):
        return None, "not run"
    if not busybox and pair.get("target") == "linux-busybox":
        return None, "not run"
    line = command
    if busybox:
        line = f"mkdir /tmp/.bin && busybox --install -s /tmp/.bin && PATH=/tmp/.bin /tmp/.bin/sh -c {shlex.quote(command)}"
    tree = f"{base}/{i}{'b' if busybox else ''}"
    subprocess.run(["cp", "-a", master, tree], check=True)
    wrong = execute(tree, pair, line)
    shutil.rmtree(tree, ignore_errors=True)
    if wrong and wrong.startswith("missing"):
        return None, wrong
    where = "busybox: " if busybox else ""
    return (f"{name}: {pair['request']}\n    {where}{command}\n    {wrong}" if wrong else None), "run"


def load(path):
    with open(path, "rb") as f:
        return tomllib.load(f).get("pair", [])


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("files", nargs="+")
    args.add_argument("--against", nargs="*", default=[], help="folders whose wordings may not be said again")
    args.add_argument("--busybox", action="store_true", help="run the busybox variants too")
    args.add_argument("--jobs", type=int, default=1, help="pairs that run at once")
    args = args.parse_args()
    wrong, seen, commands = [], {}, {}
    for folder in args.against:
        for path in glob.glob(f"{folder}/*.toml"):
            if os.path.realpath(path) not in map(os.path.realpath, args.files):
                for pair in load(path):
                    for text in [pair["request"], *pair.get("also", [])]:
                        seen.setdefault(tokens(text), f"{Path(path).name}: {text}")
    pairs = [(Path(f).name, p) for f in args.files for p in load(f)]
    wordings = 0
    for name, pair in pairs:
        wrong += [f"{name}: {pair.get('request')}: {what}" for what in shape(pair)]
        for text in [pair.get("request", ""), *pair.get("also", [])]:
            wordings += 1
            if tokens(text) and tokens(text) in seen and not pair.get("target"):
                wrong.append(f"{name}: `{text}` is said already: {seen[tokens(text)]}")
            seen.setdefault(tokens(text), text)
        if pair.get("cmd") and not pair.get("target") in ("windows", "fish"):
            parsed = subprocess.run(["bash", "-n", "-c", pair["cmd"]], capture_output=True, text=True)
            if parsed.returncode:
                wrong.append(f"{name}: {pair['request']}: {parsed.stderr.strip()}")
    # pairs that have passed are not run again: a changed fixture or pair has another key
    fixture = (ROOT / "tests/library/fixture.sh").read_bytes()
    key = lambda p, b: hashlib.sha1(fixture + json.dumps([p, b], sort_keys=True).encode()).hexdigest()
    kept = Path(tempfile.gettempdir()) / "caro-verified"
    passed = set(kept.read_text().split()) if kept.exists() else set()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    base = tempfile.mkdtemp(prefix="caro-verify-", dir=memory)
    try:
        master = f"{base}/master"
        os.mkdir(master)
        subprocess.run(["bash", str(ROOT / "tests/library/fixture.sh"), master], check=True)
        jobs = [(n, p, master, base, i, b) for i, (n, p) in enumerate(pairs) if "cmd" in p for b in ([False, True] if args.busybox else [False])]
        new = [job for job in jobs if key(job[1], job[5]) not in passed]
        with ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(judge, new))
        with open(kept, "a") as file:
            file.writelines(key(job[1], job[5]) + "\n" for job, (fault, what) in zip(new, results) if not fault and what == "run")
        results += [(None, "run")] * (len(jobs) - len(new))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    wrong += [w for w, _ in results if w]
    counts = {}
    for _, what in results:
        counts[what] = counts.get(what, 0) + 1
    print("\n".join(wrong))
    print(f"{len(pairs)} pairs, {wordings} wordings, {len(wrong)} faults; {counts}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
