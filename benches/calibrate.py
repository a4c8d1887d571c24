#!/usr/bin/env python3
"""How well confidence predicts success, and what else would: calibrate.py REPORT.json | PREDICTIONS RESULTS TASKS ...

REPORT.json is what `caro eval --json` printed; the three others are those of the development tasks (ask.py, score.py, dev.jsonl).
For each source and for all of them: the expected calibration error (ten bins of equal width), what chance alone gives on average
to so many answers whose confidence is exactly right, how often it gives no less than what was found, and the area under the
ROC curve. Then a logistic regression logit(p') = a + b logit(p) + c ln(words of the request), and what it would give, each source
predicted by a fit of the others. Of answers with `--candidates 1` it is the confidence of the model's own answer; where p has
the words in it already, b is near 1 and c near 0.
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
    """The mean error of answers that are right exactly as often as they say, and the share of draws with no less than these have."""
    dice = random.Random(1)
    errors = [ece([(p, dice.random() < p) for p, _ in pairs]) for _ in range(draws)]
    found = ece(pairs)
    return {"mean": round(sum(errors) / draws, 3), "no_less": round(sum(e >= found for e in errors) / draws, 2)}


def auroc(pairs):
    good, bad = [p for p, ok in pairs if ok], [p for p, ok in pairs if not ok]
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / max(1, len(good) * len(bad))


def solve(matrix, right):
    """Gauss-Jordan with pivots."""
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
    """Newton's method; a little ridge keeps a separable sample from running away."""
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
    """The answers of each source: (confidence, words of the request, was it right)."""
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
