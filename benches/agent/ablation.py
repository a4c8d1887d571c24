#!/usr/bin/env python3
"""What parts of the harness are worth: twelve tasks with all of it, and with one part switched off at a time.

    benches/agent/ablation.py CARO [--real] [--part guard] [--json FILE] [-v]

CARO is the binary. Without --real a scripted model does the same steps each time (ablation.toml), which shows what a part costs and
saves; with it the person's own model does what it can. Each task runs with everything and without the part it is about; the
scripted ones without every other part too. Prints a table: tasks done, seconds, requests, tokens, reads that were repeated, and
reads that were refused.
"""
import json, os, pathlib, sys, tempfile, tomllib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from run import HERE, arguments, run

PARTS = {
    "guard": ["--no-guard", "action"],
    "skills": ["--no-skills"],
    "retrieval": ["--no-rag"],
    "context": ["--context", "off"],
}
# tokens of the scripted model's window: four files of the tasks do not fit
WINDOW = 2600


def compact(text):
    """JSON as the grammar has it; TOML has turned its \\n into line ends already."""
    return text.replace("\n", "\\n")


def script(task, folder):
    """The scripted model's file: a reply for each step; what it knows comes from what stands in the prompt."""
    rules = []
    for steps, knows in ((task["steps"], True), (task.get("else", []), False)):
        for number, (tool, args) in enumerate(steps, 1):
            rule = {"reply": f"Thought: go on\nAction: {tool} {compact(args)}"}
            if number > 1:
                rule["match"] = f"\nStep {number} of "
            if knows and "knows" in task:
                # skills stand in the first turn, knowledge in the task's own
                if task["part"] == "skills":
                    rule["system"] = task["knows"]
                elif number == 1:
                    rule["match"] = task["knows"]
            rules.append((number, not knows, rule))
    # the first step's prompt has no number: its rules come last
    rules.sort(key=lambda r: (r[0] == 1, r[1]))
    path = pathlib.Path(folder) / "script.json"
    path.write_text(json.dumps({"context": WINDOW, "rules": [rule for _, _, rule in rules]}))
    return f"script:{path}"


def main():
    parser = arguments(__doc__)
    parser.add_argument("--real", action="store_true", help="the person's model, not the scripted one")
    parser.add_argument("--part", choices=list(PARTS), help="only the tasks of this part")
    parser.add_argument("-v", action="store_true", help="one line a task")
    args = parser.parse_args()
    tasks = tomllib.loads((HERE / "ablation.toml").read_text())["task"]
    tasks = [t for t in tasks if args.part in (None, t["part"])]
    caro, rows = os.path.abspath(args.caro), []
    print("| without | tasks | done | seconds | requests | tokens | repeated reads | refused reads |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    arms = [("nothing", [], p) for p in ([None] if not args.real else PARTS)]
    for name, flags in PARTS.items():
        arms.append((name, flags, name if args.real else None))
    for without, flags, only in arms:
        total = dict.fromkeys(("tasks", "done", "seconds", "requests", "tokens", "repeated_reads", "blocked_reads"), 0)
        for task in tasks:
            if only not in (None, task["part"]):
                continue
            with tempfile.TemporaryDirectory(prefix="caro-script-") as folder:
                extra = list(flags) if args.real else ["--model", script(task, folder), *flags]
                row = run(caro, task, extra, args.cache, args.timeout)
            rows.append({"without": without, "part": task["part"], **row})
            total["tasks"] += 1
            for key in total:
                total[key] += row[key] if key in row else 0
            if args.v:
                print(f"{'ok   ' if row['done'] else 'WRONG'} {without:10} {row['id']:15} {row['seconds']:6.1f} s {row['steps']} steps "
                      f"{row['tokens']:6} tokens {row['status']} {row['reason']} {row['answer'][:80]!r}", file=sys.stderr, flush=True)
        if total["tasks"]:
            label = without if only is None or without != "nothing" else f"nothing ({only})"
            print(f"| {label} | {total['tasks']} | {total['done']} | {total['seconds']:.1f} | {total['requests']} | {total['tokens']} | "
                  f"{total['repeated_reads']} | {total['blocked_reads']} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
