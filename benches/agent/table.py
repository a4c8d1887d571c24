#!/usr/bin/env python3
"""Measures the rows of the specification's table of what such a harness gains.

    benches/agent/table.py CARO [--only knowledge|skills|tasks] [--words] [--real] [--json FILE [--resume]] [--record FILE]

CARO is the binary. Three measurements, each printed with the specification's figure (`a-omni-loop.md`, section 9 and
scenario 2):

- knowledge: the questions of questions.toml about our own documents. A hit is a passage of the right file that
  contains the phrase, so the search is measured and not the model. Each question is asked in two wordings, each by a
  process of its own: by words, and by words and meaning if the embedding model is installed
  (`caro model pull all-minilm-l6-v2`).
- skills: shelf.toml, filled up to 10, 50 and 200 skills. The tokens of the skills chosen for a task, against those of
  all skills in the prompt, counted by the same program (`--explain`, a scripted model with a window in which all fit).
  And how often the right skill was chosen, without which a small prompt is of no use.
- tasks: the twelve of ablation.py with everything and without all four parts, on the scripted model, or with --real on
  the user's. --json, --resume, --window and --args are those of ablation.py: with a file of its runs nothing is run
  again.

--record saves all figures as JSON.
"""
import json, os, pathlib, re, statistics, subprocess, sys, tempfile, time, tomllib
from datetime import date

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ablation
from run import HERE

ROOT = HERE.parent.parent
SIZES = (10, 50, 200)
WORDINGS = {"named": "by who knows what things are called", "ask": "in other words than the text"}


def modes(caro, home, by_words):
    """Returns environments by mode of search: by words, and by words and meaning if wanted and possible."""
    plain = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG")} | {"HOME": home, "XDG_DATA_HOME": f"{home}/data",
                                                                              "CARO_CACHE_DIR": f"{home}/cache"}
    found = subprocess.run([caro, "model", "path", "all-minilm-l6-v2"], capture_output=True, text=True).stdout.strip()
    if by_words or not os.path.isdir(found):
        return {"words": plain}
    return {"words": plain, "words and meaning": plain | {"CARO_MODELS_DIR": os.path.dirname(found)}}


def flat(text):
    return " ".join(text.split())


def corpus(patterns):
    """Returns the folders and files to ingest."""
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def sources(question):
    return [(question["file"], question["phrase"]), *map(tuple, question.get("also", []))]


def shared(question, wording):
    """Returns the share of a question's words that occur near its answer, and so lead to it without meaning."""
    file, phrase = sources(question)[0]
    text = flat((ROOT / file).read_text())
    at = text.index(phrase)
    near = set(re.findall(r"\w+", text[max(0, at - 500):at + 500].lower()))
    words = [word for word in re.findall(r"\w+", question[wording].lower()) if len(word) > 3]
    return sum(word in near for word in words) / len(words)


def interval(hits, of, z=1.96):
    """Returns the 95 % interval by Wilson, in percent."""
    part, spread = hits / of + z * z / (2 * of), z * (hits / of * (1 - hits / of) / of + z * z / (4 * of * of)) ** 0.5
    return [round(100 * (part + sign * spread) / (1 + z * z / of)) for sign in (-1, 1)]


def spread(times):
    return {"p50": round(statistics.median(times), 1), "p95": round(sorted(times)[int(0.95 * len(times))], 1)}


def knowledge(caro, by_words):
    """Measures how often the passage with the answer is the first hit or among three, and the time of a search."""
    asked = tomllib.loads((HERE / "questions.toml").read_text())
    roots, questions = corpus(asked["corpus"]), asked["question"]
    for file, phrase in [source for question in questions for source in sources(question)]:
        if not any((ROOT / file).is_relative_to(root) for root in roots) or phrase not in flat((ROOT / file).read_text()):
            sys.exit(f"questions.toml: {file} is no document, or has not got: {phrase}")
    report = {"questions": len(questions), "shared_words": {
        wording: round(statistics.median(shared(question, wording) for question in questions), 2) for wording in WORDINGS}}
    with tempfile.TemporaryDirectory(prefix="caro-table-") as home:
        for mode, env in modes(caro, home, by_words).items():
            def run(*words):
                begun = time.monotonic()
                done = subprocess.run([caro, "-q", "knowledge", *words, "--json"], env=env, cwd=home, capture_output=True, text=True)
                if not done.stdout:
                    sys.exit(done.stderr)
                return json.loads(done.stdout), 1000 * (time.monotonic() - begun)

            run("ingest", *map(str, roots))
            times = {"inside": [], "load": [], "process": []}
            report[mode] = {}
            for wording in WORDINGS:
                ranks = {}
                for question in questions:
                    document, wall = run("query", question[wording], "--limit", "3")
                    answer = document["answer"]
                    right = [any(ROOT / file == pathlib.Path(hit["path"]) and phrase in flat(hit["text"]) for file, phrase in sources(question))
                             for hit in answer["hits"]]
                    ranks[question[wording]] = right.index(True) + 1 if True in right else 0
                    times["inside"].append(answer["ms"]["embed"] + answer["ms"]["search"])
                    times["load"].append(answer["ms"]["load"])
                    times["process"].append(wall)
                hits = {f"at_{n}": sum(0 < rank <= n for rank in ranks.values()) for n in (1, 3)}
                report[mode][wording] = {**hits, **{f"{at}_interval": interval(n, len(questions)) for at, n in hits.items()}, "ranks": ranks}
            report[mode]["ms"] = {name: spread(of) for name, of in times.items()}
            stats = run("stats")[0]
            report |= {"documents": stats["documents"], "passages": stats["chunks"]}
    return report


def skill(folder, name, description):
    """Writes a skill with a text of about 1000 letters into the folder."""
    line = f"Step of {name}: look at what is there, do the next part of it, and hold the result against what was asked for.\n"
    place = folder / name
    place.mkdir(parents=True)
    place.joinpath("SKILL.md").write_text(f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n\n{line * (1000 // len(line))}")


def explained(caro, env, folder, *words):
    """Returns the tokens of the skill layers of a prompt, the number of whole texts, and the names of the skills."""
    model = pathlib.Path(env["HOME"]) / "all.json"
    model.write_text(json.dumps({"context": 100_000_000, "rules": [{"reply": "x"}]}))
    done = subprocess.run([caro, "agent", *words, "--explain", "--no-mcp", "--model", f"script:{model}"], env=env, cwd=folder, capture_output=True,
                          text=True)
    if done.returncode != 0 or "left out" in done.stdout:
        sys.exit(done.stderr + done.stdout)
    layers = re.findall(r"^ +\d+  (skills?)(?: \(data\))?: (\d+) tokens$", done.stdout, re.M)
    named = re.search(r"^skills: (.*)$", done.stdout, re.M)[1]
    names = [] if named == "none" else [one.split(" (")[0] for one in named.split(", ")]
    return sum(int(tokens) for _, tokens in layers), sum(name == "skill" for name, _ in layers), names


def skills(caro, by_words):
    """Measures the tokens of skills in a prompt: of those chosen for the task, and of all."""
    shelf = tomllib.loads((HERE / "shelf.toml").read_text())
    made = [(f"{thing}-{deed}", f"How {thing} are {deed} in this house, and by whom.") for deed in shelf["deeds"] for thing in shelf["things"]]
    every = [(s["name"], s["description"]) for s in shelf["skill"]] + made
    tasks = [(task, s["name"]) for s in shelf["skill"] for task in s["tasks"]]
    report = {"tasks": len(tasks)}
    with tempfile.TemporaryDirectory(prefix="caro-table-") as home:
        for mode, env in modes(caro, home, by_words).items():
            report[mode] = {}
            for size in SIZES:
                folder = pathlib.Path(home) / f"{mode.replace(' ', '-')}-{size}"
                (folder / "work").mkdir(parents=True)
                place = env | {"XDG_CONFIG_HOME": str(folder)}
                for name, description in every[:size]:
                    skill(folder / "caro" / "skills", name, description)
                names = [part for name, _ in every[:size] for part in ("--skill", name)]
                whole, texts, _ = explained(caro, place, folder / "work", "do it all at once", *names)
                if texts != size:
                    sys.exit(f"of {size} skills {texts} stand in the prompt")
                rows = []
                for task, right in tasks:
                    tokens, texts, chosen = explained(caro, place, folder / "work", task)
                    rows.append({"task": task, "tokens": tokens, "right": right in chosen[:texts], "listed": right in chosen[texts:],
                                 "chosen": chosen[:texts]})
                # only tasks with the right skill: without it few tokens are no merit
                served = [r["tokens"] for r in rows if r["right"]]
                mean = statistics.mean(served) if served else 0
                report[mode][str(size)] = {
                    "all_tokens": whole, "chosen_tokens": round(mean, 1), "ratio": round(whole / mean, 1) if mean else None,
                    "right": len(served), "only_listed": sum(r["listed"] for r in rows), "none": sum(not r["tokens"] for r in rows), "rows": rows,
                }
    return report


def tasks(args):
    """Runs the twelve tasks with everything and without all four parts."""
    kept = ablation.record(args)
    ablation.measure(args, ["nothing", "all"], kept)
    whole, bare = (ablation.of(kept.rows, arm) for arm in ("nothing", "all"))
    # the longest time between the two runs of a task, because the speed of a machine changes over hours
    apart = max(abs(run["at"] - bare[task]["at"]) for task, run in whole.items())
    report = {"apart_s": apart, "model": kept.about["model"], "window": kept.about["window"], "args": kept.about["args"]}
    for name, arm in (("with", "nothing"), ("without", "all")):
        runs = list(ablation.of(kept.rows, arm).values())
        changing = [r for r in runs if r["changing"]]
        of = lambda key: {"median": statistics.median(r[key] for r in runs), "sum": round(ablation.total(runs, key), 1)}
        report[name] = {
            "tasks": len(runs), "done": ablation.total(runs, "done"),
            **{key: of(key) for key in ("seconds", "tokens", "reads", "repeated_reads", "changes")},
            "changing": len(changing), "changed": sum(r["changes"] > 0 for r in changing), "changing_done": ablation.total(changing, "done"),
            "acted": {part: ablation.total(runs, trace) for part, trace in ablation.TRACES.items()},
        }
    return report


def percent(hits, at, of):
    low, high = hits[f"{at}_interval"]
    return f"{100 * hits[at] / of:.0f} % ({low} to {high})"


def table(report):
    """Formats the rows of the specification with the figures measured here."""
    lines = ["| | specification: before, after | here: without, with | |", "| --- | --- | --- | --- |"]
    if ran := report.get("tasks"):
        out, full = ran["without"], ran["with"]
        pair = lambda key, unit="": f"{out[key]['sum']:g}{unit}, {full[key]['sum']:g}{unit}"
        medians = lambda key: f"medians of {full['tasks']} tasks {out[key]['median']:g} and {full[key]['median']:g}"
        apart = "" if ran["apart_s"] < 1800 else "; not in one hour, so not to be compared"
        acted = ", ".join(f"{part} {n}" for part, n in full["acted"].items())
        lines += [
            f"| runtime | 94 s, 24 s | {pair('seconds', ' s')} | {medians('seconds')}{apart} |",
            f"| tokens | 60k, 7k | {pair('tokens')} | {medians('tokens')} |",
            f"| file reads | 4+ repeats, 1-2 reads | {pair('reads')}, of them repeated {pair('repeated_reads')} | |",
            f"| actions | 0 writes, 1+ writes | {pair('changes')} | {full['changing']} tasks need a change: made in {out['changed']}, "
            f"{full['changed']}, right in {out['changing_done']}, {full['changing_done']} |",
            f"| tasks done | | {out['done']}, {full['done']} of {full['tasks']} | {ran['model']}; parts acted: {acted} |",
        ]
    if asked := report.get("knowledge"):
        found = [(mode, asked[mode]) for mode in ("words", "words and meaning") if mode in asked]
        for mode, of in found:
            ms = of["ms"]
            lines.append(f"| search, by {mode} | -, about 50 ms | {ms['inside']['p50']} ms (95 %: {ms['inside']['p95']}) | the whole process "
                         f"{ms['process']['p50']} ms (95 %: {ms['process']['p95']}), of that loading the model {ms['load']['p50']} |")
        for wording, how in WORDINGS.items():
            for mode, modal in found:
                first, three = (percent(modal[wording], at, asked["questions"]) for at in ("at_1", "at_3"))
                lines.append(f"| knowledge hits, {how}, by {mode} | -, 95 % | first {first}, among three {three} | {asked['questions']} questions, "
                             f"{asked['passages']} passages; half of the questions share at most {100 * asked['shared_words'][wording]:.0f} % of "
                             f"their words with what stands around the answer |")
    if shelf := report.get("skills"):
        for mode in ("words", "words and meaning"):
            for size, of in shelf.get(mode, {}).items():
                lines.append(f"| {size} skills, by {mode} | 50x less (50 skills) | {of['all_tokens']} tokens, {of['chosen_tokens']:g}: {of['ratio']}x "
                             f"| where the right text is in the prompt, which is in {of['right']} of {shelf['tasks']} tasks (only its name "
                             f"in {of['only_listed']}, no skill at all in {of['none']}) |")
    return "\n".join(lines)


def main():
    parser = ablation.options(__doc__)
    parser.add_argument("--only", action="append", choices=["knowledge", "skills", "tasks"], default=[])
    parser.add_argument("--words", action="store_true", help="look for passages and skills by words alone")
    parser.add_argument("--record", type=pathlib.Path, help="where all figures go")
    args = parser.parse_args()
    caro, wanted = os.path.abspath(args.caro), args.only or ["tasks", "knowledge", "skills"]
    if "tasks" in wanted and args.real and not args.json:
        parser.error("--real takes long: say with --json where its runs are kept")
    if args.part:
        parser.error("the table is of all tasks")
    report = {"date": str(date.today()), "machine": ablation.machine()}
    report["caro"] = subprocess.run([caro, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    ways = {"knowledge": lambda: knowledge(caro, args.words), "skills": lambda: skills(caro, args.words), "tasks": lambda: tasks(args)}
    for name, measure in ways.items():
        if name in wanted:
            report[name] = measure()
            if args.record:
                args.record.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))


if __name__ == "__main__":
    main()
