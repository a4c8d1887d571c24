#!/usr/bin/env python3
"""llama.cpp's word on a model with a low-rank adapter, into adapter.json: benches/agreement/adapter.py MODEL.gguf ADAPTER.gguf

Set-up as for ../peer.py. For windows of text.txt the negative natural logarithms of the probabilities of all tokens but the first,
summed, with the adapter and without it. To hold caro against it:

    CARO_ADAPTER_FILE=ADAPTER.gguf cargo test --release --lib -- --ignored --nocapture the_adapter_agrees
"""
import hashlib, json, os, sys

import numpy
from llama_cpp import Llama

WINDOW, WINDOWS = 512, 6
HERE = os.path.dirname(os.path.abspath(__file__))


def windows(model_path, lora_path):
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
    return sums


def main():
    model, adapter = sys.argv[1:3]
    said = {
        "model": os.path.basename(model),
        "adapter_sha256": hashlib.sha256(open(adapter, "rb").read()).hexdigest(),
        "without": windows(model, None),
        "with": windows(model, adapter),
    }
    with open(os.path.join(HERE, "adapter.json"), "w") as f:
        json.dump(said, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
