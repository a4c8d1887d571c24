#!/usr/bin/env python3
"""Asks caro the lists of benches/lists/ and prints counts, never a line: lists.py CARO [ARGS ...]

held-short.txt has requests, held-chat.txt lines that are none, held-macos.txt requests for macOS. They were written by
someone who saw neither code nor answers, and have not been read since. Prints the number of requests answered, of
lines refused, and for macOS of answers without a finding of severity error.
"""
import json, subprocess, sys
from pathlib import Path

LISTS = Path(__file__).resolve().parent / "lists"


def ask(caro, lines, more):
    """Returns the answers to the lines, in order."""
    command = [caro, "batch", "--budget", "30", "--timeout", "120", *more]
    text = "".join(json.dumps({"id": i, "request": line}) + "\n" for i, line in enumerate(lines))
    ran = subprocess.run(command, input=text, capture_output=True, text=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines: {ran.stderr[-400:]}"
    return answers


def main():
    caro, more = sys.argv[1], sys.argv[2:]
    read = lambda name: [line for line in (LISTS / f"held-{name}.txt").read_text().splitlines() if line.strip()]
    is_answer = lambda answer: bool(answer.get("cmd"))
    short = [is_answer(a) for a in ask(caro, read("short"), [*more, "--shell", "bash"])]
    print(f"requests answered: {sum(short)} of {len(short)} (short English {sum(short[:60])} of 60, odd {sum(short[60:80])} of 20, "
          f"other languages {sum(short[80:])} of {len(short) - 80})", flush=True)
    chat = [not is_answer(a) for a in ask(caro, read("chat"), [*more, "--shell", "bash"])]
    print(f"lines that are no request refused: {sum(chat)} of {len(chat)} (English {sum(chat[:70])} of 70)", flush=True)
    macos = ask(caro, read("macos"), [*more, "--target", "macos-bsd"])
    clean = [is_answer(a) and not any(f["severity"] == "error" for f in a.get("findings", [])) for a in macos]
    print(f"macOS, answers without an error by rule: {sum(clean)} of {len(clean)}")


if __name__ == "__main__":
    main()
