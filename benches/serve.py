#!/usr/bin/env python3
"""Loads OpenAI-compatible servers with streams: serve.py NAME=URL[#TOKEN] ... [--clients 1,4,8] [--rounds 3] [--json FILE]

Each client requests one answer of 64 tokens to a prompt of about 128, then the next. Servers take turns within a
round, so that changes of the machine's speed affect all. Prints for each number of clients: tokens per second of all
clients together, and the median and the 95th percentile of the time to the first token. Prompts are not repeated, so
that no server has cached more of one than the beginning of the chat template.
"""
import argparse, http.client, itertools, json, statistics, threading, time
from urllib.parse import urlsplit

ANSWER = 64
WORDS = ("river stone lamp garden window bridge paper winter engine market copper signal harbour ladder meadow pocket "
         "thunder velvet wagon yellow anchor basket candle desert ember forest granite hollow island jungle").split()


def prompt(number):
    """Returns a prompt of about 128 tokens that asks for a long answer, another one for each number."""
    words = [WORDS[(number * 7 + i * (3 + number % 11)) % len(WORDS)] for i in range(96)]
    return f"Story {number}. Write a long story, without headings, in which these words occur in this order: {' '.join(words)}."


class Server:
    def __init__(self, text):
        self.name, _, address = text.partition("=")
        url, _, self.token = address.partition("#")
        parts = urlsplit(url)
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path.rstrip("/") + "/v1/chat/completions"

    def ask(self, number):
        """Returns (seconds to the first token, tokens of the answer)."""
        body = {"model": "default", "stream": True, "stream_options": {"include_usage": True}, "temperature": 0, "max_tokens": ANSWER,
                "messages": [{"role": "user", "content": prompt(number)}]}
        if self.name.startswith("caro"):
            del body["model"]
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=600)
        began, first, tokens = time.monotonic(), None, 0
        connection.request("POST", self.path, json.dumps(body), headers)
        response = connection.getresponse()
        assert response.status == 200, (response.status, response.read(500))
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if first is None and any(c.get("delta", {}).get("content") for c in chunk.get("choices", [])):
                first = time.monotonic() - began
            tokens = (chunk.get("usage") or {}).get("completion_tokens", tokens)
        connection.close()
        return first, tokens


def load(server, clients, answers, numbers):
    """Runs `clients` at once, each for `answers` answers."""
    results, failures = [], []

    def client():
        for _ in range(answers):
            try:
                results.append(server.ask(next(numbers)))
            except Exception as error:  # recorded, and counted as lost
                failures.append(repr(error))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"seconds": time.monotonic() - began, "tokens": sum(t for _, t in results), "first": [f for f, _ in results if f is not None],
            "lost": failures}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("server", nargs="+", help="NAME=URL, with #TOKEN behind it where one is needed")
    parser.add_argument("--clients", default="1,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answers", type=int, default=2, help="of each client in a round")
    parser.add_argument("--json", help="a file for the whole run")
    args = parser.parse_args()
    servers, numbers, runs = [Server(s) for s in args.server], itertools.count(int(time.time()) % 10**6 * 100), []
    for server in servers:  # warm-up, for one-time computations
        server.ask(next(numbers))
    for clients in map(int, args.clients.split(",")):
        for _ in range(args.rounds):
            for server in servers:
                runs.append({"server": server.name, "clients": clients, **load(server, clients, args.answers, numbers)})
        for server in servers:
            mine = [r for r in runs if r["server"] == server.name and r["clients"] == clients]
            speed = statistics.median(r["tokens"] / r["seconds"] for r in mine)
            first = sorted(f for r in mine for f in r["first"])
            lost = sum(len(r["lost"]) for r in mine)
            p95 = first[min(len(first) - 1, int(len(first) * 0.95))]
            print(f"{clients} clients, {server.name}: {speed:.1f} tokens/s, first token {statistics.median(first):.2f} s (95 %: {p95:.2f}), "
                  f"{lost} lost", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(runs, file, indent=1)


if __name__ == "__main__":
    main()
