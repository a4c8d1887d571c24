#!/usr/bin/env python3
"""Measures what parts of the harness contribute: twelve tasks with all parts, and with one part switched off at a time.

    benches/agent/ablation.py CARO [--real] [--json FILE [--resume]] [--arm NAME] [--part NAME] [--window N] [--args "..."] [-v]

CARO is the binary. Without --real a scripted model takes the same steps each time (ablation.toml), which shows what a
part costs and saves; with it the user's own model is used. Each of the twelve tasks runs with everything, without each
of the four parts, and without all of them. These six runs of a task follow one another, so that the machine is in a
similar state, and the first of them changes with every task.

Both models have a window of --window tokens, so that prompts have to be shortened. caro has no setting for it: the
scripted model's file has the window, and the real model's file is copied with a smaller context length (into
`bench-models` of the cache; as large as the model, remove it afterwards). --window 0 keeps the engine's own, 4096. How
often each part acted is counted from the events and printed too: a part that never acted has shown nothing.

With --json every run is saved as soon as it ends; --resume continues such a file, or only prints it if it is complete.
Times can be compared only if the runs of a task were made in one go.
"""
import hashlib, json, os, pathlib, re, shlex, shutil, statistics, subprocess, sys, tempfile, time, tomllib
from datetime import date

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from run import HERE, arguments, run

PARTS = {
    "guard": ["--no-guard", "action"],
    "skills": ["--no-skills"],
    "retrieval": ["--no-rag"],
    "context": ["--context", "off"],
}
ARMS = {"nothing": [], **PARTS, "all": [flag for flags in PARTS.values() for flag in flags]}
# the figure of a run that counts how often a part acted
TRACES = {"guard": "blocked_reads", "skills": "skills", "retrieval": "passages", "context": "shortened"}
# tokens of the window: the layers fit into it, but four files of the tasks do not
WINDOW = 2600


def compact(text):
    """Restores the \\n of JSON, which TOML has turned into line ends."""
    return text.replace("\n", "\\n")


def script(task, folder, window):
    """Writes the scripted model: a reply for each step, depending on whether the prompt has what the task needs."""
    rules = []
    for steps, knows in ((task["steps"], True), (task.get("else", []), False)):
        for number, (tool, args) in enumerate(steps, 1):
            rule = {"reply": f"Thought: go on\nAction: {tool} {compact(args)}"}
            if number > 1:
                rule["match"] = f"\nStep {number} of "
            if knows and "knows" in task:
                # skills are in the system message, knowledge in the message of the task
                if task["part"] == "skills":
                    rule["system"] = task["knows"]
                elif number == 1:
                    rule["match"] = task["knows"]
            rules.append((number, not knows, rule))
    # the first step's prompt has no number: its rules come last
    rules.sort(key=lambda r: (r[0] == 1, r[1]))
    path = pathlib.Path(folder) / "script.json"
    path.write_text(json.dumps({"context": window or 4096, "rules": [rule for _, _, rule in rules]}))
    return f"script:{path}"


def windowed(file, window, folder):
    """Copies a GGUF file with `context_length` set to `window`, because an engine uses its model's value."""
    with open(file, "rb") as model:
        head = model.read(1 << 20)
    # a key is stored as its length, its letters, the type of the value (4: 32 bits, unsigned) and the value
    found = [m for m in re.finditer(rb"[a-z0-9_]+\.context_length(?=\x04\0\0\0)", head)
             if head[m.start() - 8:m.start()] == len(m[0]).to_bytes(8, "little")]
    if len(found) != 1:
        sys.exit(f"{file} does not say in its beginning what window it has: use --window 0")
    copy = pathlib.Path(folder) / f"{pathlib.Path(file).stem}-{window}.gguf"
    if not copy.exists() or copy.stat().st_size != os.path.getsize(file):
        copy.parent.mkdir(parents=True, exist_ok=True)
        part = copy.with_suffix(".part")
        shutil.copyfile(file, part)
        with open(part, "r+b") as model:
            model.seek(found[0].end() + 4)
            model.write(window.to_bytes(4, "little"))
        part.rename(copy)
    return copy


def chosen(caro):
    """Returns the id or file of the model of a run without --model; runs see no configuration except the variable."""
    with tempfile.TemporaryDirectory() as home:
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "CARO_MODEL")} | {"HOME": home}
        return subprocess.run([caro, "config", "get", "model"], env=env, cwd=home, capture_output=True, text=True, check=True).stdout.strip()


def real(caro, name, window, cache):
    """Returns the arguments for the user's model with this window."""
    if not window:
        return ["--model", name]
    asked = subprocess.run([caro, "model", "path", name], capture_output=True, text=True).stdout.strip()
    file = name if os.path.isfile(name) else asked
    if not file or not os.path.isfile(file):
        sys.exit(f"the model {name} is no file here, so nothing can be said about its window: use --window 0")
    return ["--model", str(windowed(file, window, pathlib.Path(cache) / "bench-models"))]


class Record:
    """The runs so far, saved after each of them."""

    def __init__(self, path, resume, about):
        self.path, self.about, self.rows = path, about, []
        if path is None or not path.exists():
            return
        if not resume:
            sys.exit(f"{path} is there already: --resume goes on with it")
        old = json.loads(path.read_text())
        other = [key for key, value in about.items() if key != "date" and old["about"].get(key) != value]
        if other:
            sys.exit(f"{path} is of another {', '.join(other)}: {[old['about'].get(key) for key in other]}")
        self.about, self.rows = old["about"], old["rows"]

    def has(self, arm, task):
        return any(r["without"] == arm and r["id"] == task["id"] for r in self.rows)

    def add(self, row):
        self.rows.append(row)
        if self.path:
            part = self.path.with_name(self.path.name + ".part")
            part.write_text(json.dumps({"about": self.about, "rows": self.rows}, indent=1))
            part.rename(self.path)


def record(args):
    """Opens the record of the runs with these arguments."""
    caro = os.path.abspath(args.caro)
    version = subprocess.run([caro, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    about = {
        "date": str(date.today()), "machine": machine(), "caro": version, "sha256": hashlib.sha256(pathlib.Path(caro).read_bytes()).hexdigest(),
        "model": chosen(caro) if args.real else "scripted", "window": args.window, "args": args.args, "timeout": args.timeout,
    }
    return Record(args.json, args.resume, about)


def machine():
    with open("/proc/cpuinfo") as file:
        name = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} cores, {name}"


def measure(args, arms, kept):
    """Makes the runs that are not in the record yet."""
    caro = os.path.abspath(args.caro)
    tasks = [t for t in tomllib.loads((HERE / "ablation.toml").read_text())["task"] if args.part in (None, t["part"])]
    left = [(t, arm) for at, t in enumerate(tasks) for arm in arms[at % len(arms):] + arms[:at % len(arms)] if not kept.has(arm, t)]
    if not left:
        return
    model = real(caro, kept.about["model"], args.window, args.cache) if args.real else []

    def one(task, arm):
        with tempfile.TemporaryDirectory(prefix="caro-script-") as folder:
            spoken = model if args.real else ["--model", script(task, folder, args.window)]
            return run(caro, task, [*spoken, *ARMS[arm], *shlex.split(args.args)], args.cache, args.timeout)

    if args.real:
        # not counted: the first run reads the model from the disk and computes the constant part of the prompt
        one(tasks[0], "nothing")
    for task, arm in left:
        row = {"without": arm, "part": task["part"], "changing": changing(task), "at": int(time.time()), **one(task, arm)}
        if args.window and row["layer_budget"] > args.window // 2:
            sys.exit(f"the layers had {row['layer_budget']} tokens: the model does not keep to a window of {args.window}")
        kept.add(row)
        if args.v:
            print(f"{'ok   ' if row['done'] else 'WRONG'} {arm:10} {row['id']:15} {row['seconds']:6.1f} s {row['steps']} steps "
                  f"{row['tokens']:6} tokens {row['status']} {row['reason']} {row['answer'][:80]!r}", file=sys.stderr, flush=True)


def changing(task):
    """True if the task cannot be done without changing a file."""
    return any(tool in ("write", "edit") for tool, _ in task["steps"])


def of(rows, arm):
    """Returns the runs of an arm by task."""
    return {r["id"]: r for r in rows if r["without"] == arm}


def total(rows, key):
    return sum(r[key] for r in rows)


def both(rows, key, form=""):
    """Formats the median and the sum of the runs."""
    return f"{statistics.median(r[key] for r in rows):{form}} / {total(rows, key):{form}}"


def tables(rows, arms):
    """Formats the results as Markdown."""
    whole, lines = of(rows, "nothing"), []
    lines += ["| without | tasks | done | lost, won | seconds, median / sum | tokens, median / sum | requests | reads | repeated | changes |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    shown = [(arm, of(rows, arm)) for arm in arms if of(rows, arm)]
    for arm, runs in shown:
        ran = list(runs.values())
        lost = sum(whole[i]["done"] and not r["done"] for i, r in runs.items() if i in whole)
        won = sum(r["done"] and not whole[i]["done"] for i, r in runs.items() if i in whole)
        against = "" if arm == "nothing" else f"{lost}, {won}"
        lines.append(f"| {arm} | {len(ran)} | {total(ran, 'done')} | {against} | {both(ran, 'seconds', '.1f')} | {both(ran, 'tokens', '.0f')} | {total(ran, 'requests')} | {total(ran, 'reads')} | {both(ran, 'repeated_reads', 'g')} | "
                     f"{total(ran, 'changes')} |")
    lines += ["", "How often the parts acted, counted from the events:", "",
              "| without | reads refused | prompts shortened (tokens) | results put aside | skills in prompts | passages | layers without room |",
              "| --- | --- | --- | --- | --- | --- | --- |"]
    for arm, runs in shown:
        ran = list(runs.values())
        lines.append(f"| {arm} | {total(ran, 'blocked_reads')} | {total(ran, 'shortened')} ({total(ran, 'shortened_tokens')}) | "
                     f"{total(ran, 'offloaded')} | {total(ran, 'skills')} | {total(ran, 'passages')} | {total(ran, 'dropped_layers')} |")
    lines += ["", "Only the tasks in which a part acted when it was there, with it and without it:", "",
              "| part | tasks | done | seconds, sum | tokens, sum | repeated reads |", "| --- | --- | --- | --- | --- | --- |"]
    for part, trace in TRACES.items():
        without = of(rows, part)
        pairs = [(r, without[i]) for i, r in whole.items() if r[trace] and i in without]
        cells = [f"{total([w for w, _ in pairs], key):{form}}, {total([o for _, o in pairs], key):{form}}"
                 for key, form in (("done", ""), ("seconds", ".1f"), ("tokens", ""), ("repeated_reads", ""))]
        lines.append(f"| {part} | {len(pairs)} | {' | '.join(cells if pairs else ['-'] * 4)} |")
    return "\n".join(lines)


def options(what):
    """Returns the parser of the arguments of a script that runs these tasks."""
    parser = arguments(what)
    parser.add_argument("--real", action="store_true", help="the person's model, not the scripted one")
    parser.add_argument("--resume", action="store_true", help="go on with the runs of --json")
    parser.add_argument("--part", choices=list(PARTS), help="only the tasks that are about this part")
    parser.add_argument("--window", type=int, default=WINDOW, help="tokens of the model's window; 0 for its own")
    parser.add_argument("--args", default="", help="more arguments for caro agent, in every arm")
    parser.add_argument("-v", action="store_true", help="one line a task")
    return parser


def main():
    parser = options(__doc__)
    parser.add_argument("--arm", action="append", choices=list(ARMS), help="only these arms; every one if none is given")
    args = parser.parse_args()
    if args.real and not args.json:
        parser.error("--real takes long: say with --json where its runs are kept")
    arms = args.arm or list(ARMS)
    kept = record(args)
    measure(args, arms, kept)
    print(tables([r for r in kept.rows if args.part in (None, r["part"])], [arm for arm in ARMS if arm in arms]))


if __name__ == "__main__":
    main()
