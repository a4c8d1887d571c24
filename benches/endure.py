#!/usr/bin/env python3
"""Loads a server for a long time, on a model with known answers: endure.py CARO [--seconds 60] [--requests 10000]

Starts `CARO serve` with a scripted model and a data folder of its own, then measures
  crowd    100 clients for --seconds, half of them at /v1/command and half at streams of /v1/chat/completions: the
           number of answers, and of those lost (no answer), mixed (another client's answer) or turned away (429, 503)
  slow     40 clients that request some 10 MB of stream and never read it, while another client works: its slowest of
           10 answers
  memory   the resident set after each tenth of --requests, compared with that after the first tenth, which fills
           caches
The exit status is 1 if an answer was lost or mixed, or memory grew by more than a tenth.
"""
import argparse, collections, http.client, json, os, signal, socket, subprocess, sys, tempfile, threading, time

CLIENTS, SILENT, BESIDE = 100, 40, 10
LONG = "river stone lamp garden window bridge paper winter engine market " * 4000


class Server:
    def __init__(self, caro, folder):
        rules = [{"match": f"item{n}x", "reply": f"echo item{n}x", "delay_ms": 1} for n in range(CLIENTS)]
        rules += [{"match": "at length", "reply": LONG}, {"reply": "echo nobody"}]
        script = os.path.join(folder, "script.json")
        with open(script, "w") as file:
            json.dump({"rules": rules}, file)
        self.environment = {**os.environ, "HOME": folder, "CARO_RESIDENT": "off"}
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            self.environment[f"XDG_{kind}_HOME"] = os.path.join(folder, kind.lower())
        command = [caro, "serve", "--port", "0", "--model", f"script:{script}"]
        with open(os.path.join(folder, "log"), "w") as log:
            self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit(open(os.path.join(folder, "log")).read())
        self.host, port = line.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self.token = subprocess.run([caro, "serve", "token"], env=self.environment, capture_output=True, text=True).stdout.strip()
        while self.get("/ready") != 200:
            time.sleep(0.05)

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=120)

    def headers(self, client="endure"):
        return {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}", "X-Caro-Client": client}

    def get(self, path):
        connection = self.connection()
        connection.request("GET", path, headers=self.headers())
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    def resident(self):
        """Returns the resident set in MiB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def command(server, connection, word):
    """Sends a request; returns the command of the answer, or the HTTP status."""
    connection.request("POST", "/v1/command", json.dumps({"request": f"print the word {word}"}), server.headers())
    response = connection.getresponse()
    body = response.read()
    return json.loads(body)["cmd"] if response.status == 200 else response.status


def chat(server, connection, word):
    """Sends a chat; returns the streamed text, or the HTTP status."""
    body = {"messages": [{"role": "user", "content": word}], "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), server.headers())
    response = connection.getresponse()
    lines = response.read().decode().splitlines()
    if response.status != 200:
        return response.status
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in deltas for choice in chunk["choices"])


def crowd(server, seconds):
    counted, until = collections.Counter(), time.monotonic() + seconds

    def client(n):
        word, connection = f"item{n}x", server.connection()
        while time.monotonic() < until:
            try:
                said = (command if n % 2 else chat)(server, connection, word)
            except Exception as error:  # counted and printed
                connection.close()
                counted["lost"] += 1
                counted[repr(error)[:80]] += 1
                continue
            counted["turned away" if said in (429, 503) else "answered" if said == f"echo {word}" else f"mixed: {said}"[:80]] += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"crowd: {CLIENTS} clients, {seconds:.0f} s: {dict(counted)}", flush=True)
    return all(name in ("answered", "turned away") for name in counted) and counted["answered"] > 0


def slow(server):
    body = json.dumps({"messages": [{"role": "user", "content": "at length"}], "stream": True, "logprobs": True, "n": 8}).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in server.headers("silent").items())
    request = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    sleepers = []
    for _ in range(SILENT):
        sleeper = socket.socket()
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        sleeper.settimeout(30)
        sleeper.connect((server.host, server.port))
        sleeper.sendall(request)
        sleepers.append(sleeper)
    times, said = [], collections.Counter()
    for n in range(BESIDE):
        began = time.monotonic()
        answer = command(server, server.connection(), f"item{n}x")
        said["answered" if answer == f"echo item{n}x" else answer] += 1
        times.append(time.monotonic() - began)
    print(f"slow: beside {SILENT} that do not read: {dict(said)}, the slowest in {max(times):.2f} s; {server.resident():.0f} MiB", flush=True)
    for sleeper in sleepers:
        sleeper.close()
    return said["answered"] == BESIDE


def memory(server, requests):
    sizes, connection = [], server.connection()
    for n in range(requests):
        (command if n % 2 else chat)(server, connection, f"item{n % CLIENTS}x")
        if (n + 1) % (requests // 10) == 0:
            sizes.append(server.resident())
    print(f"memory: MiB after each tenth of {requests} requests: {' '.join(f'{size:.1f}' for size in sizes)}", flush=True)
    return sizes[-1] <= 1.1 * sizes[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("caro")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=10000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.abspath(args.caro), folder)
        try:
            fine = [memory(server, args.requests), crowd(server, args.seconds), slow(server)]
        finally:
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(60)
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
