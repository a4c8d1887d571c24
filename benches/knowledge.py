#!/usr/bin/env python3
"""Measures `caro knowledge`: ingesting and querying 10 000 passages, by words and by meaning.

    benches/knowledge.py [--caro target/release/caro] [--chunks 10000] [--questions 40] [--home DIR] [--record FILE]
    benches/knowledge.py --memory [--words 1000,10000,40000] [--vectors 300,1000] [--record FILE]

The documents are generated from a seed: Markdown whose sections are as long as passages may be. The library is a new
one in a temporary folder; the embedding model is that of this machine (`caro model pull all-minilm-l6-v2`). Each
question is asked by a process of its own, so that only the page cache is warm; the time to load the model is reported
separately. With --home the library is stored there, and a second run queries it without ingesting again.

--memory measures the peak memory of one process at several sizes, in passages: ingesting, ingesting again, a query. By
words, then with vectors, which takes about a tenth of a second per passage. Resident memory includes mapped files, so
with vectors the 91 MB of the embedding model.
"""
import argparse, json, os, random, resource, statistics, subprocess, sys, tempfile, time
from datetime import date

SYLLABLES = [a + b for a in "b d f g k l m n p r s t v z".split() for b in "a e i o u".split()]


def words(rng, count):
    """Returns a vocabulary with the frequencies of a language: the n-th word is n times rarer than the first."""
    vocabulary = ["".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(8000)]
    common = "the server file of and to in is for with on that log disk user network error time path config".split()
    vocabulary = common + vocabulary
    return vocabulary, [1 / (n + 1) for n in range(len(vocabulary))]


def corpus(folder, chunks, rng):
    """Writes `chunks` sections of about 1000 bytes, fifty per file; returns the vocabulary."""
    vocabulary, weights = words(rng, chunks)
    for number in range((chunks + 49) // 50):
        parts = []
        for section in range(min(50, chunks - 50 * number)):
            text = " ".join(rng.choices(vocabulary, weights, k=170))[:1000]
            lines = "\n".join(text[i : i + 90] for i in range(0, len(text), 90))
            parts.append(f"## Section {number} {section} {rng.choice(vocabulary)}\n\n{lines}\n")
        with open(os.path.join(folder, f"part{number:04}.md"), "w") as file:
            file.write("\n".join(parts))
    return vocabulary


# The resident memory of its parent counts as a child's own, so the process that starts it is as small as possible.
LAUNCHER = """
import posix, sys
child = posix.posix_spawn(sys.argv[2], sys.argv[2:], posix.environ)
_, status, usage = posix.wait4(child, 0)
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
posix.write(int(sys.argv[1]), b"%d %d %d" % (posix.waitstatus_to_exitcode(status), usage.ru_maxrss, own))
"""


def peak(caro, env, *words):
    """Runs `caro knowledge`; returns its peak resident memory in MB (2^20 bytes), and its output."""
    told, tell = os.pipe()
    command = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(tell), caro, "-q", "knowledge", *words, "--json"]
    text = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[tell]).stdout
    os.close(tell)
    with open(told) as pipe:
        code, most, floor = (int(number) for number in pipe.read().split())
    if code not in (0, 1) or not text:
        sys.exit(f"caro knowledge {words[0]}: exit code {code}")
    if most <= floor:
        print(f"caro knowledge {words[0]} had at most the {floor // 1024} MB of what starts it", file=sys.stderr)
    return round(most / 1024, 1), json.loads(text)


def memory(caro, model, sizes):
    """Measures peak memory by size; `sizes` are pairs of the mode of search and the number of passages."""
    rows = []
    print("| by | passages | library, MB | peak reading in, MB | again | a question |\n| --- | --- | --- | --- | --- | --- |")
    for how, chunks in sizes:
        with tempfile.TemporaryDirectory() as home:
            docs = os.path.join(home, "docs")
            os.makedirs(docs)
            corpus(docs, chunks, random.Random(7))
            env = {**os.environ, "HOME": home, "XDG_DATA_HOME": home + "/data", "CARO_CACHE_DIR": home + "/cache"}
            env = {**env, "CARO_MODELS_DIR": os.path.dirname(model)} if how == "vectors" else env
            ingest, read = peak(caro, env, "ingest", docs)
            again, _ = peak(caro, env, "ingest", docs)
            query, _ = peak(caro, env, "query", "how is the server of the network configured")
            _, stats = peak(caro, env, "stats")
        if how == "vectors" and stats["vectors"] != stats["chunks"]:
            sys.exit(f"{stats['vectors']} of {stats['chunks']} passages have vectors")
        rows.append({"by": how, "passages": read["chunks_indexed"], "library_mb": round(stats["file_bytes"] / (1 << 20), 1), "ingest_mb": ingest,
                     "again_mb": again, "query_mb": query})
        print("| " + " | ".join(map(str, rows[-1].values())) + " |", flush=True)
    return rows


def sizes(text):
    return [int(size) for size in text.split(",") if size]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caro", default="target/release/caro")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--home")
    parser.add_argument("--record")
    parser.add_argument("--memory", action="store_true", help="only peak memory, at the sizes of --words and --vectors")
    parser.add_argument("--words", type=sizes, default=[1000, 10_000, 40_000], help="passages, with commas between")
    parser.add_argument("--vectors", type=sizes, default=[300, 1000], help="passages, likewise; nothing for none")
    args = parser.parse_args()
    caro = os.path.abspath(args.caro)
    model = subprocess.run([caro, "model", "path", "all-minilm-l6-v2"], capture_output=True, text=True).stdout.strip()
    if args.memory:
        if args.vectors and not model:
            sys.exit("for --vectors: caro model pull all-minilm-l6-v2")
        wanted = [("words", size) for size in args.words] + [("vectors", size) for size in args.vectors]
        report = {"date": str(date.today()), "machine": machine(), "caro": version(caro), "memory": memory(caro, model, wanted)}
        recorded(report, args.record)
        return
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as temporary:
        home = os.path.abspath(args.home or temporary)
        docs, made = os.path.join(home, "docs"), os.path.join(home, "ingest.json")
        plain = {**os.environ, "HOME": home, "XDG_DATA_HOME": home + "/data", "CARO_CACHE_DIR": home + "/cache"}
        models = {**plain, "CARO_MODELS_DIR": os.path.dirname(model)} if model else plain

        def run(env, *words):
            began = time.monotonic()
            done = subprocess.run([caro, "-q", "knowledge", *words, "--json"], env=env, capture_output=True, text=True)
            if done.returncode not in (0, 1) or not done.stdout:
                sys.exit(done.stderr)
            return json.loads(done.stdout), time.monotonic() - began

        report = {"date": str(date.today()), "machine": machine(), "caro": version(caro)}
        if not os.path.exists(made):
            os.makedirs(docs)
            vocabulary = corpus(docs, args.chunks, rng)
            ingest = {"vocabulary": vocabulary[:400], "load_average": round(os.getloadavg()[0], 1)}
            read, seconds = run(plain, "ingest", docs)
            ingest["words"] = {"files": read["files_processed"], "chunks": read["chunks_indexed"], "seconds": round(seconds, 2)}
            ingest["again"] = {"seconds": round(run(plain, "ingest", docs)[1], 2)}
            if model:
                vectors, seconds = run(models, "ingest", docs)
                ingest["vectors"] = {"added": vectors["vectors_added"], "seconds": round(seconds, 1),
                                     "ms_each": round(1000 * seconds / vectors["vectors_added"], 1)}
            ingest["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
            with open(made, "w") as file:
                json.dump(ingest, file)
        with open(made) as file:
            report["ingest"] = json.load(file)
        vocabulary = report["ingest"].pop("vocabulary")
        report["library_mb"] = run(models, "stats")[0]["file_bytes"] // (1 << 20)
        rng = random.Random(8)
        questions = ["how is the " + " ".join(rng.choices(vocabulary, k=rng.randint(2, 5))) + " done" for _ in range(args.questions)]
        report["query_ms"] = {}
        for name, env in [("words", plain), ("words and meaning", models)][: 2 if model else 1]:
            asked = [run(env, "query", question) for question in questions]
            times = [{**a["answer"]["ms"], "process": 1000 * wall} for a, wall in asked]
            for time_ in times:
                time_["answer"] = time_["embed"] + time_["search"]
            report["query_ms"][name] = {
                part: {"p50": round(statistics.median(t[part] for t in times), 1),
                       "p95": round(sorted(t[part] for t in times)[int(0.95 * len(times))], 1)}
                for part in ("load", "embed", "search", "answer", "process")
            }
    print(json.dumps(report, indent=2))
    recorded(report, args.record)


def recorded(report, path):
    if path:
        with open(path, "w") as file:
            file.write(json.dumps(report, indent=2) + "\n")


def machine():
    with open("/proc/cpuinfo") as file:
        name = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} cores, {name}"


def version(caro):
    return subprocess.run([caro, "--version"], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
