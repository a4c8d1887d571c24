#!/usr/bin/env python3
"""Compares the engines alone, in one run on one file: prompts of 512 and 32 tokens, single tokens, and drafted answers.

Set-up as for peer.py. Use:
    .peer/bin/python benches/engine.py [--tasks TASKS.jsonl] [--kernels avx2] [--caro target/release/caro] [--out RECORD.json]

Rates are the best of several rounds, in which the two engines take turns. For the answers caro is asked each task (a
field `prompt` a line; without --tasks the requests of benches/requests.txt) with its own prompt, greedily, for one
answer: tokens per decode time, including drafts and grammar. llama.cpp then computes the same tokens after a prompt of
about the same length, one by one, as it does without a draft.
"""
import argparse, datetime, json, os, platform, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))


def serve(path, threads):
    """Child process: makes one measurement of llama.cpp for each line of JSON."""
    from llama_cpp import Llama

    model = Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False)
    prompt = lambda n: [1000 + i * 7 % 5000 for i in range(n)]

    def cut(length):
        model.n_tokens = length
        model._ctx.kv_cache_seq_rm(-1, length, -1)

    def seconds(tokens, one_by_one):
        since = time.perf_counter()
        for part in [[t] for t in tokens] if one_by_one else [tokens]:
            model.eval(part)
        return time.perf_counter() - since

    def answer(wish):
        if "prefill" in wish:
            cut(0)
            return seconds(prompt(wish["prefill"]), False)
        if "decode" in wish:
            cut(0)
            model.eval(prompt(64))
            return seconds([1234] * wish["decode"], True)
        # the state of the prompt is reused; only the tokens after it are removed
        if model.n_tokens < wish["behind"]:
            cut(0)
            model.eval(prompt(wish["behind"]))
        cut(wish["behind"])
        tokens = model.tokenize(wish["text"].encode(), add_bos=False)
        return [len(tokens), seconds(tokens, True)]

    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def child(argv, env=None):
    """Starts a process that answers lines with lines; returns it and a function that asks it."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def ask(wish):
        process.stdin.write(json.dumps(wish) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return process, ask


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--caro", default="target/release/caro")
    args.add_argument("--threads", type=int, default=os.cpu_count())
    args.add_argument("--model", default="qwen2.5-coder-1.5b", help="an id of `caro model list`, or a file")
    args.add_argument("--kernels", help="as `caro bench --kernels`; not for the answers")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--tasks", help="JSON lines with a field `prompt`")
    args.add_argument("--first", type=int, default=100, help="how many of the tasks")
    args.add_argument("--no-answers", action="store_true")
    args.add_argument("--out")
    args.add_argument("--serve", help=argparse.SUPPRESS)
    args = args.parse_args()
    if args.serve:
        return serve(args.serve, args.threads)

    model = args.model
    if not os.path.exists(model):
        model = subprocess.check_output([args.caro, "model", "path", args.model], text=True).strip()
    python = os.environ.get("PEER_PYTHON", sys.executable)
    peer, ask_peer = child([python, os.path.abspath(__file__), "--threads", str(args.threads), "--serve", model])
    peer.stdout.readline()
    rates = {who: {"prefill_512": 0, "prefill_32": 0, "decode": 0} for who in ("peer", "caro")}
    kernels = ["--kernels", args.kernels] if args.kernels else []
    for _ in range(args.rounds):
        bench = [args.caro, "bench", "--json", "--quick", "--runs", "1", "--model", model, "--threads", str(args.threads), *kernels]
        ours = json.loads(subprocess.check_output(bench))
        prefill = ours["prefill_tokens_per_s"]
        now = {"prefill_512": prefill["512"], "prefill_32": prefill["32"], "decode": ours["decode_tokens_per_s"]}
        for name, rate in now.items():
            rates["caro"][name] = max(rates["caro"][name], rate)
        for name, wish, count in (("prefill_512", "prefill", 512), ("prefill_32", "prefill", 32), ("decode", "decode", 64)):
            rates["peer"][name] = max(rates["peer"][name], round(count / ask_peer({wish: count}), 1))
        print(json.dumps({"caro": now, "peer so far": rates["peer"]}), flush=True)

    record = {
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cpu": next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor()),
            "threads": args.threads,
            "kernel": platform.release(),
        },
        "model": os.path.basename(model),
        "backend": ours["backend"],
        "tokens_per_s": rates,
        "ratio": {name: round(rates["caro"][name] / rates["peer"][name], 3) for name in rates["caro"]},
    }
    if not args.no_answers:
        record["answers"] = answers(args, model, ask_peer)
    print(json.dumps(record, indent=1))
    if args.out:
        with open(args.out, "w") as f:
            json.dump(record, f, indent=1)
            f.write("\n")
    peer.stdin.close()
    peer.wait()


def answers(args, model, ask_peer):
    if args.tasks:
        tasks = [json.loads(line)["prompt"] for line in open(args.tasks)]
    else:
        tasks = [line.strip() for line in open(os.path.join(HERE, "requests.txt")) if line.strip()]
    batch = [args.caro, "batch", "--json", "--model", model, "--refine", "never", "--candidates", "1", "--resident", "off"]
    caro, ask_caro = child(batch)
    ask_caro({"id": 0, "request": "list files", "shell": "bash"})
    # About as long as caro's own prompt.
    behind = 900
    ask_peer({"text": "ls", "behind": behind})
    sums = {"caro": [0, 0.0], "peer": [0, 0.0]}
    drafted = accepted = 0
    each = []
    for task in tasks[: args.first]:
        answer = ask_caro({"id": 1, "request": task, "shell": "bash"})
        timing = answer["timing"]
        if not answer.get("cmd") or not timing["decode"]:
            continue
        tokens, seconds = ask_peer({"text": answer["cmd"], "behind": behind})
        for who, n, s in (("caro", timing["tokens"], timing["decode"] / 1e3), ("peer", tokens, seconds)):
            sums[who][0] += n
            sums[who][1] += s
        drafted += timing["drafted"]
        accepted += timing["accepted"]
        each.append(seconds / tokens * timing["tokens"] / (timing["decode"] / 1e3))
    caro.stdin.close()
    caro.wait()
    rate = {who: round(n / s, 1) for who, (n, s) in sums.items()}
    return {
        "answers": len(each),
        "tokens": sums["caro"][0],
        "drafted": drafted,
        "accepted": accepted,
        "tokens_per_s": rate,
        "ratio": round(rate["caro"] / rate["peer"], 3),
        "median_ratio_of_an_answer": round(statistics.median(each), 3),
    }


if __name__ == "__main__":
    main()
