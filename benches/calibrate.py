#!/usr/bin/env python3
"""How well confidence predicts success: calibrate.py PREDICTIONS.jsonl RESULTS.jsonl [more pairs ...]

Prints the expected calibration error (ten bins of equal width), the area under the ROC curve, and the two numbers of a
Platt scaling (logit(p') = a + b logit(p)) fitted by Newton's method, with the error that it would have, each task
left out in turn.
"""
import json, math, sys


def logit(p):
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def ece(pairs):
    bins = [[] for _ in range(10)]
    for p, ok in pairs:
        bins[min(int(p * 10), 9)].append((p, ok))
    return sum(abs(sum(p for p, _ in b) - sum(ok for _, ok in b)) for b in bins) / len(pairs)


def auroc(pairs):
    good, bad = [p for p, ok in pairs if ok], [p for p, ok in pairs if not ok]
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / (len(good) * len(bad))


def platt(pairs):
    a, b = 0.0, 1.0
    for _ in range(50):
        # ridge keeps a separable sample from running away
        g0, g1, h00, h01, h11 = 1e-3 * a, 1e-3 * (b - 1), 1e-3, 0.0, 1e-3
        for p, ok in pairs:
            x = logit(p)
            q = sigmoid(a + b * x)
            g0, g1, w = g0 + q - ok, g1 + (q - ok) * x, q * (1 - q)
            h00, h01, h11 = h00 + w, h01 + w * x, h11 + w * x * x
        det = h00 * h11 - h01 * h01
        a, b = a - (h11 * g0 - h01 * g1) / det, b - (h00 * g1 - h01 * g0) / det
    return a, b


def main():
    files = sys.argv[1:]
    if not files or len(files) % 2:
        sys.exit(__doc__)
    pairs = []
    for predictions, results in zip(files[::2], files[1::2]):
        passed = {r["id"]: bool(r["passed"]) for r in map(json.loads, open(results))}
        for p in map(json.loads, open(predictions)):
            if p["command"]:
                pairs.append((p["confidence"], passed[p["id"]]))
    left_out = []
    for i, (p, ok) in enumerate(pairs):
        a, b = platt(pairs[:i] + pairs[i + 1:])
        left_out.append((sigmoid(a + b * logit(p)), ok))
    a, b = platt(pairs)
    print(json.dumps({
        "answers": len(pairs),
        "passed": sum(ok for _, ok in pairs),
        "ece": round(ece(pairs), 3),
        "auroc": round(auroc(pairs), 3),
        "platt": [round(a, 3), round(b, 3)],
        "ece_left_out": round(ece(left_out), 3),
        "auroc_left_out": round(auroc(left_out), 3),
    }))


if __name__ == "__main__":
    main()
