#!/usr/bin/env python3
"""Measures how well confidence predicts success: calibrate.py REPORT.json | PREDICTIONS RESULTS TASKS ...

REPORT.json is the output of `caro eval --json`; the three other files are those of the development tasks (ask.py,
score.py, dev.jsonl). Prints for each source and for all together: the expected calibration error (ECE, ten bins of
equal width), the mean ECE of as many simulated answers whose confidence is exactly right, the share of simulations
whose ECE is at least the measured one, and the area under the ROC curve. Then a logistic regression logit(p') = a + b
logit(p) + c ln(words of the request), and its errors, each source predicted by a fit of the others. With
`--candidates 1` p is the confidence of the model's own answer. If p takes the number of words into account already, b
is near 1 and c near 0.
"""
import json, math, random, sys


def logit(p):
    p = min(max(p, 0.003), 0.997)
    return math.log(p / (1 - p))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def ece(pairs):
    bins = [[] for _ in range(10)]
    for p, ok in pairs:
        bins[min(int(p * 10), 9)].append((p, ok))
    return sum(abs(sum(p for p, _ in b) - sum(ok for _, ok in b)) for b in bins) / len(pairs)


def of_chance(pairs, draws=2000):
    """Returns the mean ECE of simulated answers of exactly right confidence, and the share with no less than these."""
    dice = random.Random(1)
    errors = [ece([(p, dice.random() < p) for p, _ in pairs]) for _ in range(draws)]
    found = ece(pairs)
    return {"mean": round(sum(errors) / draws, 3), "no_less": round(sum(e >= found for e in errors) / draws, 2)}


def auroc(pairs):
    good, bad = [p for p, ok in pairs if ok], [p for p, ok in pairs if not ok]
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / max(1, len(good) * len(bad))


def solve(matrix, right):
    """Solves a linear system by Gauss-Jordan elimination with pivots."""
    n = len(right)
    rows = [list(row) + [r] for row, r in zip(matrix, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def features(answer):
    confidence, words, _ = answer
    return [1.0, logit(confidence), math.log(max(1, words))]


def fit(answers):
    """Fits by Newton's method; a small ridge penalty keeps the weights of a separable sample finite."""
    weights = [0.0, 1.0, 0.0]
    for _ in range(50):
        gradient = [1e-3 * w for w in weights]
        hessian = [[1e-3 * (i == j) for j in range(3)] for i in range(3)]
        for answer in answers:
            x = features(answer)
            p = sigmoid(sum(w * f for w, f in zip(weights, x)))
            for i in range(3):
                gradient[i] += (p - answer[2]) * x[i]
                for j in range(3):
                    hessian[i][j] += p * (1 - p) * x[i] * x[j]
        weights = [w - step for w, step in zip(weights, solve(hessian, gradient))]
    return weights


def predicted(weights, answers):
    return [(sigmoid(sum(w * f for w, f in zip(weights, features(a)))), a[2]) for a in answers]


def told(answers):
    return [(confidence, ok) for confidence, _, ok in answers]


def read(files):
    """Reads the answers of each source: (confidence, words of the request, whether it was right)."""
    sources = {}
    while files:
        if files[0].endswith(".json"):
            name = files.pop(0)
            tasks = json.load(open(name))["tasks"]
            sources[name] = [(t["confidence"], len(t["request"].split()), t["verdict"] == "passed") for t in tasks if t.get("cmd")]
            continue
        if len(files) < 3:
            sys.exit(__doc__)
        predictions, results, tasks = (list(map(json.loads, open(files.pop(0)))) for _ in range(3))
        passed = {r["id"]: bool(r["passed"]) for r in results}
        words = {t["id"]: len(t["prompt"].split()) for t in tasks}
        sources["development"] = [(p["confidence"], words[p["id"]], passed[p["id"]]) for p in predictions if p["command"]]
    return sources


def main():
    sources = read(sys.argv[1:])
    if not sources:
        sys.exit(__doc__)
    everything = [a for answers in sources.values() for a in answers]
    for name, answers in [*sources.items(), ("all", everything)]:
        line = {"source": name, "answers": len(answers), "right": sum(a[2] for a in answers)}
        line |= {"ece": round(ece(told(answers)), 3), "of_chance": of_chance(told(answers)), "auroc": round(auroc(told(answers)), 3)}
        others = [a for other, more in sources.items() if other != name for a in more]
        if others and name != "all":
            guess = predicted(fit(others), answers)
            line["by_the_others"] = {"ece": round(ece(guess), 3), "auroc": round(auroc(guess), 3)}
        print(json.dumps(line))
    weights = fit(everything)
    guess = predicted(weights, everything)
    print(json.dumps({"fit": [round(w, 3) for w in weights], "ece": round(ece(guess), 3), "auroc": round(auroc(guess), 3)}))


if __name__ == "__main__":
    main()
