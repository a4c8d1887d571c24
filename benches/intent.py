#!/usr/bin/env python3
"""Compares keywords and embeddings at deciding whether a task asks for documents, on `agent/intent.toml`.

    benches/intent.py [--caro CARO] [--out RECORD.json] [--others]

The decision by caro's keywords comes from `caro agent --explain`, vectors from `caro serve` (all-minilm-l6-v2,
downloaded with `caro model pull`). Embeddings decide in two ways, both without parameters: by the mean of each kind's
examples, and by the three nearest examples. `--others` uses tasks that were written for another purpose: the questions
of `agent/questions.toml`, and the tasks of `agent/tasks.toml` and `agent/fresh2.toml`, which ask for actions.
"""
import argparse
import json
import math
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
MODEL = "all-minilm-l6-v2"


def by_keywords(caro, task, folder):
    ran = subprocess.run(
        [caro, "agent", task, "--explain", "--no-skills", "--no-mcp", "--no-memory"],
        cwd=folder, capture_output=True, text=True, check=True,
    )
    line = next(line for line in ran.stdout.splitlines() if line.startswith("knowledge: "))
    return line.startswith("knowledge: yes")


class Server:
    """A running `caro serve` that computes vectors."""

    def __init__(self, caro):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = tempfile.TemporaryDirectory()
        script = pathlib.Path(self.folder.name) / "script.json"
        script.write_text('{"rules": [{"reply": "x"}]}')
        command = [caro, "serve", "--port", str(self.port), "--model", f"script:{script}"]
        token = subprocess.run([caro, "serve", "token"], capture_output=True, text=True, check=True).stdout.strip()
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def vectors(self, texts):
        body = json.dumps({"model": MODEL, "input": texts}).encode()
        url = f"http://127.0.0.1:{self.port}/v1/embeddings"
        for _ in range(600):
            try:
                request = urllib.request.Request(url, body, self.headers)
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return [one["embedding"] for one in json.load(answer)["data"]]
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    sys.exit(error.read().decode())
                time.sleep(0.1)
            except OSError:
                time.sleep(0.1)
        sys.exit("the server does not answer")

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def near(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def mean(vectors):
    return [sum(column) / len(vectors) for column in zip(*vectors)]


def others():
    def read(name):
        return tomllib.loads((HERE / "agent" / name).read_text())

    asks = [one[form] for one in read("questions.toml")["question"] for form in ["ask", "named"]]
    tasks = [one for name in ["tasks.toml", "fresh2.toml"] for one in read(name)["task"]]
    # of the first file only the development tasks
    acts = [one["words"] for one in tasks if one["set"] in ("dev", "fresh2")]
    return {"asks": asks, "acts": acts}


def table(said, truth):
    right = sum(s == t for s, t in zip(said, truth))
    missed = sum(t and not s for s, t in zip(said, truth))
    false = sum(s and not t for s, t in zip(said, truth))
    return {"right": right, "of": len(truth), "missed": missed, "asked for nothing": false}


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--caro", default="caro")
    args.add_argument("--out")
    args.add_argument("--others", action="store_true")
    args = args.parse_args()
    data = tomllib.loads((HERE / "agent/intent.toml").read_text())
    kinds = ["asks", "acts"]
    if args.others:
        data["tasks"] = others()
    tasks = [(task, kind == "asks") for kind in kinds for task in data["tasks"][kind]]
    truth = [asks for _, asks in tasks]
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        said["keywords"] = [by_keywords(args.caro, task, folder) for task, _ in tasks]
        print(f"keywords asked in {time.perf_counter() - begun:.1f} s", file=sys.stderr)
    server = Server(args.caro)
    try:
        examples = {kind: server.vectors(data["examples"][kind]) for kind in kinds}
        begun = time.perf_counter()
        vectors = [server.vectors([task])[0] for task, _ in tasks]
        each = (time.perf_counter() - begun) / len(tasks)
    finally:
        server.end()
    means = {kind: mean(examples[kind]) for kind in kinds}
    said["embeddings, mean of the examples"] = [near(v, means["asks"]) > near(v, means["acts"]) for v in vectors]

    def nearest(vector):
        all_near = [(near(vector, one), kind == "asks") for kind in kinds for one in examples[kind]]
        return sum(asks for _, asks in sorted(all_near, reverse=True)[:3]) >= 2

    said["embeddings, three nearest examples"] = [nearest(vector) for vector in vectors]
    either = [a or b for a, b in zip(said["keywords"], said["embeddings, mean of the examples"])]
    said["keywords or the mean"] = either
    record = {"tasks": len(tasks), "milliseconds of a vector": round(each * 1000, 1), "ways": {}}
    for way, decided in said.items():
        record["ways"][way] = table(decided, truth)
        wrong = [task for (task, asks), one in zip(tasks, decided) if one != asks]
        record["ways"][way]["wrong"] = wrong
        print(way, {k: v for k, v in record["ways"][way].items() if k != "wrong"})
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
