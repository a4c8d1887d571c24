#!/usr/bin/env python3
"""Compares caro with llama.cpp: same GGUF file, same requests, same machine, same run, each from request to answer.

Set-up (once, about 10 minutes on two cores; needs cmake):
    python3 -m venv .peer && CMAKE_ARGS=-DGGML_NATIVE=ON .peer/bin/pip install --no-binary llama-cpp-python llama-cpp-python

Use:
    .peer/bin/python benches/peer.py --system SYSTEM.txt --requests REQUESTS.txt [--caro target/release/caro] [--out RECORD.json]

The peer answers with the specification's JSON prompt (SYSTEM.txt), as such a tool would be built on llama.cpp; caro
runs its default path: context, model, checks, manuals, safety. Cold: a fresh process, the file in the page cache.
Warm: a model that has answered once before, which is one process for the peer, and for caro its resident process,
called by a fresh `caro` each time. The two take turns, so that a slow minute of the machine affects both.
"""
import argparse, datetime, json, os, platform, statistics, subprocess, sys, tempfile, time


def peer_model(path, threads):
    from llama_cpp import Llama

    return Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False)


def peer_ask(model, system, request):
    turns = [{"role": "system", "content": system}, {"role": "user", "content": request}]
    return model.create_chat_completion(turns, temperature=0.0, max_tokens=96)["choices"][0]["message"]["content"]


def peer_serve(path, system, threads):
    """Child process: answers one request a line, as a resident peer."""
    model = peer_model(path, threads)
    peer_ask(model, system, "list files")
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(peer_ask(model, system, line.strip())), flush=True)


def timed(argv):
    """Wall seconds, peak resident bytes and output of one fresh process."""
    start = time.perf_counter()
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = child.stdout.read().decode().strip()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = round(time.perf_counter() - start, 3)
    return {"s": seconds, "peak_bytes": usage.ru_maxrss * 1024, "text": text, "exit": os.waitstatus_to_exitcode(status)}


def peak(pid):
    return next(int(l.split()[1]) * 1024 for l in open(f"/proc/{pid}/status") if l.startswith("VmHWM"))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--caro", default="target/release/caro")
    args.add_argument("--system", required=True)
    args.add_argument("--requests", required=True)
    args.add_argument("--threads", type=int, default=os.cpu_count())
    args.add_argument("--cold", type=int, default=4, help="how many of the requests are asked cold")
    args.add_argument("--model", default="qwen2.5-coder-1.5b", help="an id of `caro model list`")
    args.add_argument("--out")
    args.add_argument("--serve", help=argparse.SUPPRESS)
    args.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    args = args.parse_args()
    system = open(args.system).read()
    if args.serve:
        return peer_serve(args.serve, system, args.threads)
    if args.once:
        return print(peer_ask(peer_model(args.once[0], args.threads), system, args.once[1]))

    requests = [line.strip() for line in open(args.requests) if line.strip()]
    model = subprocess.check_output([args.caro, "model", "path", args.model], text=True).strip()
    with open(model, "rb") as f:  # into the page cache
        while f.read(1 << 24):
            pass
    me = [os.environ.get("PEER_PYTHON", sys.executable), os.path.abspath(__file__), "--threads", str(args.threads), "--system", args.system, "--requests", args.requests]
    # a resident of its own, so that only this binary is measured
    sockets = tempfile.TemporaryDirectory(prefix="caro-")
    os.environ.update(CARO_RUNTIME_DIR=sockets.name, CARO_RESIDENT="off")
    cold = {"peer": [], "caro": []}
    for request in requests[: args.cold]:
        for who, argv in (("peer", me + ["--once", model, request]), ("caro", [args.caro, "-q", "--model", args.model, request])):
            cold[who].append({"request": request, **timed(argv)})
            print("cold", who, cold[who][-1]["s"], cold[who][-1]["text"][:100].replace("\n", " "), flush=True)

    os.environ["CARO_RESIDENT"] = "on"
    peer = subprocess.Popen(me + ["--serve", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask_peer(request):
        since = time.perf_counter()
        peer.stdin.write(request + "\n")
        peer.stdin.flush()
        text = json.loads(peer.stdout.readline())
        return {"s": round(time.perf_counter() - since, 3), "text": text}

    ask = {"peer": ask_peer, "caro": lambda request: timed([args.caro, "-q", "--model", args.model, request])}
    peer.stdout.readline()
    ask["caro"]("list files")
    warm = {"peer": [], "caro": []}
    for request in requests:
        for who in warm:
            warm[who].append({"request": request, **ask[who](request)})
            print("warm", who, warm[who][-1]["s"], warm[who][-1]["text"][:100].replace("\n", " "), flush=True)
    residents = json.loads(subprocess.check_output([args.caro, "status", "--json"], text=True))["residents"]
    # all answers except the first must come from the one resident, else something else was measured
    assert len(residents) == 1 and residents[0]["served"] > len(requests), residents
    warm_peak = {"peer": peak(peer.pid), "caro": peak(residents[0]["pid"])}
    client_peak = max(row["peak_bytes"] for row in warm["caro"])
    subprocess.run([args.caro, "stop"], stdout=subprocess.DEVNULL)
    peer.stdin.close()
    peer.wait()

    p50 = lambda rows: round(statistics.median(r["s"] for r in rows), 3)
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    bench = [args.caro, "bench", "--json", "--quick", "--runs", "1", "--model", args.model, "--threads", str(args.threads)]
    record = {
        "date": datetime.date.today().isoformat(),
        "machine": {"cpu": cpu, "threads": args.threads, "kernel": platform.release()},
        "backend": json.loads(subprocess.check_output(bench))["backend"],
        "model": os.path.basename(model),
        "cold_p50_s": {w: p50(r) for w, r in cold.items()},
        "warm_p50_s": {w: p50(r) for w, r in warm.items()},
        "cold_ratio": round(p50(cold["caro"]) / p50(cold["peer"]), 3),
        "warm_ratio": round(p50(warm["caro"]) / p50(warm["peer"]), 3),
        "peak_bytes_cold": {w: max(x["peak_bytes"] for x in r) for w, r in cold.items()},
        "peak_bytes_warm": warm_peak,
        "peak_bytes_client": client_peak,
    }
    print(json.dumps(record, indent=1))
    if args.out:
        with open(args.out, "w") as f:
            json.dump({**record, "cold": cold, "warm": warm}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
