#!/usr/bin/env python3
"""Draws the losses of a run: curve.py STATE.jsonl [MORE.jsonl ...] > curve.svg

Grey dots are steps, the blue line is their mean over 20 steps, the red line the validation loss. If two files have the
same step, the later file is used.
"""
import json, sys

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 320, 48, 36


def rows(paths):
    found = {}
    for path in paths:
        with open(path) as file:
            found |= {row["step"]: row for row in map(json.loads, file)}
    return [found[step] for step in sorted(found)]


def main():
    all_rows = rows(sys.argv[1:])
    last, most = all_rows[-1]["step"], 1.6
    x = lambda step: LEFT + (WIDTH - LEFT - 12) * step / last
    y = lambda loss: 12 + (HEIGHT - BOTTOM - 12) * (1 - min(loss, most) / most)
    line = lambda points, colour: f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' + " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points) + '"/>'
    losses = [(r["step"], r["loss"]) for r in all_rows]
    means = [(s, sum(v for _, v in losses[max(0, i - 19):i + 1]) / min(20, i + 1)) for i, (s, _) in enumerate(losses)]
    held = [(r["step"], r["validation"]) for r in all_rows if "validation" in r]
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for tick in range(5):
        value = most * tick / 4
        print(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/><text x="8" y="{y(value) + 4:.1f}">{value:.1f}</text>')
    for tick in range(0, last + 1, 50):
        print(f'<text x="{x(tick):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{tick}</text>')
    print("".join(f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="1" fill="#bbb"/>' for s, v in losses))
    print(line(means, "#36c"), line(held, "#c33"), "".join(f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="#c33"/>' for s, v in held))
    print(f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}" text-anchor="middle">step</text>')
    print(f'<text x="{LEFT + 20}" y="28">loss of an answer\'s token: blue training, red validation</text></svg>')


if __name__ == "__main__":
    main()
