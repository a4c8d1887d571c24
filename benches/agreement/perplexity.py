#!/usr/bin/env python3
"""Records llama.cpp's results for text.txt by window in oracle.json: benches/agreement/perplexity.py MODEL.gguf

Set-up as for ../peer.py. A window is 512 tokens without earlier context; its number is the sum of the negative natural
logarithms of the probabilities of all tokens except the first.
"""
import json, os, sys

import numpy
from llama_cpp import Llama

WINDOW, WINDOWS = 512, 6
HERE = os.path.dirname(os.path.abspath(__file__))


def windows(model_path, lora_path=None):
    """Returns the tokens of the text and the sum of each window, with or without an adapter."""
    options = dict(n_ctx=WINDOW, n_batch=WINDOW, n_threads=os.cpu_count(), logits_all=True, verbose=False)
    model = Llama(model_path, lora_path=lora_path, **options)
    tokens = model.tokenize(open(os.path.join(HERE, "text.txt"), "rb").read(), add_bos=False)
    sums = []
    for window in range(WINDOWS):
        ids = tokens[window * WINDOW :][:WINDOW]
        model.reset()
        model.eval(ids)
        logits = model.scores[: WINDOW - 1].astype(numpy.float64)
        peak = logits.max(axis=1)
        total = peak + numpy.log(numpy.exp(logits - peak[:, None]).sum(axis=1))
        sums.append(round(float((total - logits[numpy.arange(WINDOW - 1), ids[1:]]).sum()), 4))
        print(sums[-1], flush=True)
    return tokens, sums


def main():
    tokens, sums = windows(sys.argv[1])
    path = os.path.join(HERE, "oracle.json")
    oracle = json.load(open(path))
    oracle["windows"] = sums
    oracle["tokens"] = tokens[: WINDOW * WINDOWS]
    with open(path, "w") as f:
        json.dump(oracle, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
