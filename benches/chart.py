#!/usr/bin/env python3
"""Draws records of peer.py and engine.py as bars: benches/chart.py PEER.json [ENGINE.json] > chart.svg"""
import html, json, sys

WIDTH, LEFT, BAR, GAP, HEAD = 760, 250, 20, 6, 34
COLOURS = {"caro": "#2a7f62", "llama.cpp": "#a9b4c0"}


def groups(peer, engine):
    """Yields title, unit, true if less is better, and the two values."""
    yield "cold: a fresh process", "s", True, peer["cold_p50_s"]
    yield "warm: kept ready, median", "s", True, peer["warm_p50_s"]
    yield "most memory", "GB", True, {who: b / 1e9 for who, b in peer["peak_bytes_warm"].items()}
    if engine:
        names = {"prefill_512": "prompt of 512 tokens", "prefill_32": "prompt of 32 tokens", "decode": "one token after another"}
        for key, name in names.items():
            yield name, "tok/s", False, {who: rates[key] for who, rates in engine["tokens_per_s"].items()}
        if "answers" in engine:
            yield "answers, guessing ahead", "tok/s", False, engine["answers"]["tokens_per_s"]


def main():
    peer = json.load(open(sys.argv[1]))
    engine = json.load(open(sys.argv[2])) if len(sys.argv) > 2 else None
    parts, y = [], HEAD
    for title, unit, less, values in groups(peer, engine):
        ours, theirs = values["caro"], values["peer"]
        times = theirs / ours if less else ours / theirs
        word = ("less" if unit == "GB" else "faster") if times >= 1 else "as good"
        parts.append(f'<text class="t" x="0" y="{y + BAR}">{html.escape(title)}</text>')
        parts.append(f'<text class="n" x="0" y="{y + 2 * BAR}">{times:.1f} times {word}</text>')
        for row, (who, value) in enumerate((("caro", ours), ("llama.cpp", theirs))):
            at, width = y + row * (BAR + 2), max(2, value / max(ours, theirs) * (WIDTH - LEFT - 150))
            parts.append(f'<rect x="{LEFT}" y="{at}" width="{width:.1f}" height="{BAR}" rx="2" fill="{COLOURS[who]}"/>')
            label = f"{value:.2f}" if value < 10 else f"{value:.0f}"
            parts.append(f'<text x="{LEFT + width + 8:.1f}" y="{at + 15}">{label} {unit}  {who}</text>')
        y += 2 * (BAR + 2) + GAP + 10
    machine = peer["machine"]
    head = f'{peer["model"]}, {machine["threads"]} threads, {machine["cpu"]}, {peer["date"]}'
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="13">')
    print("<style>text{fill:#444}.t{font-weight:bold}.n{fill:#2a7f62}@media(prefers-color-scheme:dark){text{fill:#ccc}.n{fill:#6fc7a6}}</style>")
    print(f'<text x="0" y="16">{html.escape(head)}</text>')
    print("\n".join(parts) + "\n</svg>")


if __name__ == "__main__":
    main()
