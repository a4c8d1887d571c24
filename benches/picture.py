#!/usr/bin/env python3
"""Draws a session in a terminal as an SVG: a real bash in a real pseudo-terminal.

    benches/picture.py OUT.svg [--columns N] [--rows N] [--title TEXT] STEP ...

A STEP is a line that is typed with Enter; `key:TEXT` is typed without Enter, `key:^D` is Ctrl-D; `wait:REGEX` waits
until the screen matches. After a line without a following `wait:`, the prompt is waited for. Only output of the
terminal is drawn, from the first STEP on. The session runs in the current folder and environment. Needs only the
standard library, on Unix.
"""
import argparse
import codecs
import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

PROMPT = "\x1b[32m$\x1b[0m "
# xterm's sixteen colours, lighter where they would be invisible on the dark background
SIXTEEN = """#5c6370 #f0707a #8fd16f #e5c07b #6cb6ff #d48ceb #56c8d8 #d7dae0
             #848b98 #ff8a93 #a5e585 #f5d48f #8ac7ff #e4a6f7 #74dbe9 #ffffff""".split()
INK, GROUND, EDGE = "#d7dae0", "#1b1f27", "#3a4150"
CELL, LINE, SIZE = 8.4, 18, 14


def colour(index):
    """Returns colour 0 to 255 of a terminal."""
    if index < 16:
        return SIXTEEN[index]
    if index < 232:
        steps = [0, 95, 135, 175, 215, 255]
        index -= 16
        return "#%02x%02x%02x" % (steps[index // 36], steps[index // 6 % 6], steps[index % 6])
    return "#" + "%02x" % (8 + 10 * (index - 232)) * 3


def wide(char):
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    """A terminal screen with the lines scrolled out of it. Unknown control sequences are ignored and collected."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [{}]
        self.row = self.column = 0
        self.style = ()
        self.saved = (0, 0)
        self.unknown = set()
        self.rest = ""

    def top(self):
        return max(0, len(self.lines) - self.rows)

    def go(self, row, column):
        self.row, self.column = max(row, self.top()), max(0, min(column, self.columns - 1))
        while len(self.lines) <= self.row:
            self.lines.append({})

    def put(self, char):
        width = wide(char)
        if width == 0:
            if (self.column - 1) in self.lines[self.row]:
                before, style = self.lines[self.row][self.column - 1]
                self.lines[self.row][self.column - 1] = (before + char, style)
            return
        if self.column + width > self.columns:
            self.go(self.row + 1, 0)
        self.lines[self.row][self.column] = (char, self.style)
        if width == 2:
            self.lines[self.row][self.column + 1] = ("", self.style)
        self.column += width

    FORM = re.compile(r"\x1b\[([?>=]?)([0-9;:]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]|\x1b([^\[\]()])")

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = self.FORM.match(text, at)
                if not found:
                    # incomplete: the rest is still to come
                    self.rest = text[at:]
                    return
                at = found.end()
                if found[3] and not found[1]:
                    self.control([int(n or 0) for n in re.split("[;:]", found[2])], found[3])
                elif found[4] == "7":
                    self.saved = (self.row, self.column)
                elif found[4] == "8":
                    self.go(*self.saved)
                continue
            at += 1
            if char == "\n":
                self.go(self.row + 1, self.column)
            elif char == "\r":
                self.column = 0
            elif char == "\b":
                self.column = max(0, self.column - 1)
            elif char == "\t":
                self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
            elif char >= " " and char != "\x7f":
                self.put(char)

    def control(self, numbers, what):
        first = numbers[0]
        count = max(1, first)
        line = self.lines[self.row]
        if what == "m":
            self.paint(numbers)
        elif what in "ABCD":
            down, right = {"A": (-count, 0), "B": (count, 0), "C": (0, count), "D": (0, -count)}[what]
            self.go(self.row + down, self.column + right)
        elif what == "G":
            self.go(self.row, count - 1)
        elif what in "Hf":
            self.go(self.top() + count - 1, (numbers[1] if len(numbers) > 1 and numbers[1] else 1) - 1)
        elif what == "K":
            for column in list(line):
                if first == 2 or first == 0 and column >= self.column or first == 1 and column <= self.column:
                    del line[column]
        elif what == "J":
            if first == 0:
                self.control([0], "K")
                del self.lines[self.row + 1 :]
            else:
                self.lines[self.top() :] = [{} for _ in self.lines[self.top() :]]
        elif what not in "hlnct":
            self.unknown.add(what)

    def paint(self, numbers):
        style = dict(self.style)
        at = 0
        while at < len(numbers):
            n = numbers[at]
            at += 1
            if n == 0:
                style = {}
            elif n in (1, 2, 3, 4, 7, 9):
                style[n] = True
            elif n in (22, 23, 24, 27, 29):
                for off in {22: (1, 2)}.get(n, (n - 20,)):
                    style.pop(off, None)
            elif n in (38, 48) and at < len(numbers):
                if numbers[at] == 5 and at + 1 < len(numbers):
                    style[n] = colour(numbers[at + 1] % 256)
                    at += 2
                elif numbers[at] == 2 and at + 3 < len(numbers):
                    style[n] = "#%02x%02x%02x" % tuple(min(255, c) for c in numbers[at + 1 : at + 4])
                    at += 4
            elif n in (39, 49):
                style.pop(n - 1, None)
            elif 30 <= n <= 37 or 90 <= n <= 97:
                style[38] = SIXTEEN[n - 30 if n < 40 else n - 82]
            elif 40 <= n <= 47 or 100 <= n <= 107:
                style[48] = SIXTEEN[n - 40 if n < 50 else n - 92]
        self.style = tuple(sorted(style.items()))

    def text(self, row):
        line = self.lines[row]
        return "".join(line.get(column, (" ",))[0] for column in range(max(line, default=-1) + 1))

    def is_at_prompt(self):
        return self.column == 2 and self.text(self.row).rstrip() == "$"


def drawn(screen, title):
    """Returns the SVG, with a background of its own so that it is readable on light and dark pages."""
    last = max((row for row in range(len(screen.lines)) if screen.text(row).strip() not in ("", "$")), default=0)
    width, height = screen.columns * CELL + 28, (last + 1) * LINE + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="{GROUND}" stroke="{EDGE}"/>',
        f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="{SIZE}" fill="{INK}" xml:space="preserve">',
    ]
    for row in range(last + 1):
        runs = []
        for column, (char, style) in sorted(screen.lines[row].items()):
            if runs and runs[-1][2] == style and runs[-1][0] + runs[-1][3] == column:
                runs[-1][1] += char
                runs[-1][3] += 1
            else:
                runs.append([column, char, style, 1])
        y = 15 + row * LINE
        for column, text, style, cells in runs:
            has = dict(style)
            fill, ground = has.get(38, INK), has.get(48)
            if 7 in has:
                fill, ground = ground or GROUND, fill
            x, span = 14 + column * CELL, cells * CELL
            if ground:
                out.append(f'<rect x="{x:g}" y="{y:g}" width="{span:g}" height="{LINE}" fill="{ground}"/>')
            if not text.strip():
                continue
            begins = len(text) - len(text.lstrip(" "))
            told = text.strip(" ")
            x, span = x + begins * CELL, (cells - begins - (len(text) - len(text.rstrip(" ")))) * CELL
            marks = f' fill="{fill}"' if fill != INK else ""
            marks += ' font-weight="bold"' if 1 in has else ""
            marks += ' opacity=".65"' if 2 in has else ""
            marks += ' font-style="italic"' if 3 in has else ""
            marks += ' text-decoration="underline"' if 4 in has else ""
            out.append(f'<text x="{x:g}" y="{y + 13:g}" textLength="{span:g}"{marks}>{html.escape(told, quote=False)}</text>')
    return "\n".join(out) + "\n</g>\n</svg>\n"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out")
    options.add_argument("--columns", type=int, default=100)
    options.add_argument("--rows", type=int, default=60)
    options.add_argument("--title", help="for who cannot see it; the first line that is typed, if not given")
    options.add_argument("--seconds", type=float, default=300, help="the most that a step may take")
    options.add_argument("steps", nargs="+", metavar="STEP")
    given = options.parse_args()

    pid, terminal = pty.fork()
    if pid == 0:
        for name in ("PROMPT_COMMAND", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.environ.update(PS1=PROMPT.replace("\x1b[32m", r"\[\e[32m\]").replace("\x1b[0m", r"\[\e[0m\]"), TERM="xterm-256color")
        os.environ.update(HISTFILE="", BASH_SILENCE_DEPRECATION_WARNING="1")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", given.rows, given.columns, 0, 0))
    screen = Screen(given.columns, given.rows)
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def until(ready, what):
        """Reads until `ready` is true and no output has come for a moment; `what` names it in the error."""
        deadline = time.monotonic() + given.seconds
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.4)[0]:
                try:
                    screen.feed(decode(os.read(terminal, 65536)))
                except OSError:
                    return
            elif ready():
                return
        os.kill(pid, signal.SIGHUP)
        shown = "\n".join(screen.text(row) for row in range(len(screen.lines)))
        sys.exit(f"{what} did not come within {given.seconds:g} s; the screen:\n{shown}")

    until(screen.is_at_prompt, "the prompt")
    for at, step in enumerate(given.steps):
        kind, _, rest = step.partition(":")
        begins = screen.row
        if kind == "wait":
            form = re.compile(rest)
            until(lambda: any(form.search(screen.text(row)) for row in range(len(screen.lines))), step)
            continue
        if kind == "key" and re.fullmatch(r"\^[@-_]", rest):
            rest = chr(ord(rest[1]) - 64)
        os.write(terminal, rest.encode() if kind == "key" else step.encode() + b"\r")
        follows = given.steps[at + 1].partition(":")[0] if at + 1 < len(given.steps) else ""
        if follows != "wait" and kind != "key":
            until(lambda: screen.is_at_prompt() and screen.row > begins, "the prompt")
    until(lambda: True, "quiet")
    os.kill(pid, signal.SIGHUP)
    os.waitpid(pid, 0)
    if screen.unknown:
        print(f"passed over: {' '.join(sorted(screen.unknown))}", file=sys.stderr)
    first = next((step for step in given.steps if step.partition(":")[0] not in ("wait", "key")), "")
    with open(given.out, "w", encoding="utf-8") as file:
        file.write(drawn(screen, given.title or first))
    print(f"{given.out}: {os.path.getsize(given.out)} bytes, {len(screen.lines)} lines")


if __name__ == "__main__":
    main()
