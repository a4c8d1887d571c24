#!/usr/bin/env python3
"""Runs the tasks of several steps on a real model and grades them by the files and answers they leave.

    benches/agent/run.py CARO [--set dev|held|held2|fresh|fresh2|fresh3|skills|skills2|reading|reading-held] [--only ID] [--args "--advise never"] [--json FILE] [-v]

CARO is the binary to measure. Each task has a folder, a home and a store of its own; the model and the cache are those of
the user. Prints one line a task and the sums: tasks done, seconds, steps, requests, tokens, repeated reads.
"""
import argparse, json, os, pathlib, shlex, subprocess, sys, tempfile, time, tomllib

HERE = pathlib.Path(__file__).parent


def run(caro, task, extra, cache, timeout):
    with tempfile.TemporaryDirectory(prefix="caro-agent-") as home:
        work = pathlib.Path(home) / "work"
        work.mkdir()
        subprocess.run(["bash", "-ec", task["setup"]], cwd=work, check=True)
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "CARO_MODELS_DIR", "CARO_MODEL", "CARO_RESIDENT")}
        env |= {"HOME": home, "XDG_DATA_HOME": f"{home}/data", "CARO_CACHE_DIR": cache}
        env.setdefault("CARO_RESIDENT", "off")
        env.setdefault("CARO_MODELS_DIR", os.path.expanduser("~/.cache/caro/models"))
        if "before" in task:
            subprocess.run(["bash", "-ec", task["before"]], cwd=work, check=True, capture_output=True, env=env | {"CARO": caro})
        command = [caro, "agent", task["words"], "--yes", "--max-steps", "8", "--events", "jsonl", *extra]
        begun = time.monotonic()
        try:
            ran = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=timeout)
            out, code = ran.stdout, ran.returncode
        except subprocess.TimeoutExpired as late:
            out, code = (late.stdout or b"").decode(errors="replace"), -1
        seconds = time.monotonic() - begun
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        report = next((e["output"] for e in events if e["event_type"] == "agent_end" and e["output"]), {})
        answer = report.get("response", "")
        graded = subprocess.run(
            ["bash", "-c", task["check"]], cwd=work, env=os.environ | {"ANSWER": answer}, capture_output=True, timeout=20
        )
        # if no text has the answer, ending with `cannot` is right
        right = report.get("status") == "completed" or task.get("kind") == "absent" and report.get("termination_reason") == "cannot"
        done = graded.returncode == 0 and right
        blocked = [e for e in events if e["event_type"] == "guardrail_check" and e["metadata"].get("finding") == "repeat-read"]
        read = [tuple(e["metadata"]["effects"].get("shows", [])) for e in events if e["event_type"] == "tool_call"]
        read = [r for r in read if r]
        files = {str(p.relative_to(work)): p.read_text(errors="replace")[:600] for p in work.rglob("*") if p.is_file() and p.stat().st_size < 600}
        return {
            "id": task["id"], "kind": task.get("kind"), "done": done, "check": graded.returncode == 0, "status": report.get("status", f"exit {code}"),
            "reason": report.get("termination_reason", ""), "seconds": round(seconds, 1), "steps": report.get("steps", 0),
            "requests": report.get("metric", {}).get("total_requests", 0),
            "tokens": report.get("metric", {}).get("total_tokens", 0),
            "reads": len(read), "repeated_reads": len(read) - len(set(read)), "blocked_reads": len(blocked), **acted(events),
            "answer": answer, "trace": trace(events), "files": files,
        }


def acted(events):
    """Counts how often the parts of the harness acted in a run, and reads the token budget of the layers."""
    def of(kind):
        return [e.get("metadata") or {} for e in events if e["event_type"] == kind]

    assemblies, shortened = of("context_assembly"), of("context_compression")
    return {
        # a refused call has no such event
        "changes": sum(bool(c["effects"].get("writes") or c["effects"].get("removes")) for c in of("tool_call")),
        "shortened": len(shortened), "shortened_tokens": sum(c["before"] - c["after"] for c in shortened),
        "offloaded": len(of("workspace_offload")), "skills": len(of("skill_loaded")),
        "passages": sum(k["hits"] for k in of("knowledge_retrieved")),
        "dropped_layers": sum(len(a["dropped"]) for a in assemblies), "layer_budget": assemblies[0]["budget"] if assemblies else 0,
    }


def trace(events):
    lines = []
    for e in events:
        kind = e["event_type"]
        if kind == "model_response":
            sure = (e.get("metadata") or {}).get("confidence")
            mark = "" if sure is None else f"[{sure:.2f}] "
            lines.append(f"{(e.get('duration_ms') or 0) / 1000:6.1f} s  {mark}{e['output']}")
        elif kind in ("tool_result", "tool_error"):
            lines.append(f"          -> [{e['metadata'].get('outcome')}] {str(e['output'])[:500]}")
        elif kind == "model_error":
            lines.append(f"          !! {e['error']}")
    return lines


def arguments(what):
    """Returns the parser of the arguments of every script that runs tasks."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("caro")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--cache", default=os.path.expanduser("~/.cache/caro"))
    parser.add_argument("--timeout", type=float, default=240, help="seconds a task")
    return parser


def main():
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=["dev", "held", "held2", "fresh", "fresh2", "fresh3", "skills", "skills2", "reading", "reading-held", "all"], default="all")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--args", default="", help="more arguments for caro agent")
    parser.add_argument("-v", action="store_true", help="show what each run did")
    args = parser.parse_args()
    files = ("tasks.toml", "fresh2.toml", "unseen.toml", "skills.toml", "reading.toml", "reading-held.toml")
    tasks = [t for name in files for t in tomllib.loads((HERE / name).read_text())["task"]]
    every = {t["set"] for t in tasks} - {"skills", "skills2", "reading", "reading-held"}
    tasks = [t for t in tasks if t["set"] in (every if args.set == "all" else {args.set}) and (not args.only or t["id"] in args.only)]
    rows = []
    for task in tasks:
        row = run(os.path.abspath(args.caro), task, shlex.split(args.args), args.cache, args.timeout)
        row["set"] = task["set"]
        rows.append(row)
        mark = "ok   " if row["done"] else "WRONG"
        print(f"{mark} {row['id']:15} {row['seconds']:6.1f} s {row['steps']} steps {row['requests']:2} requests "
              f"{row['tokens']:6} tokens {row['status']} {row['reason']}", flush=True)
        if args.v:
            print("    " + "\n    ".join("\n".join(row["trace"]).splitlines()))
            print(f"    ANSWER {row['answer']!r}")
            if not row["done"]:
                print(f"    FILES {json.dumps(row['files'])[:1500]}", flush=True)
    total = {k: sum(r[k] for r in rows) for k in ("done", "check", "seconds", "steps", "requests", "tokens", "repeated_reads", "blocked_reads")}
    print(f"{total['done']} of {len(rows)} done ({total['check']} as they are to be, sure of it or not), {total['seconds']:.0f} s, {total['steps']} steps, {total['requests']} requests, "
          f"{total['tokens']} tokens, {total['repeated_reads']} repeated reads, {total['blocked_reads']} blocked")
    if args.json:
        args.json.write_text(json.dumps({"args": args.args, "total": total, "tasks": rows}, indent=1))


if __name__ == "__main__":
    main()
