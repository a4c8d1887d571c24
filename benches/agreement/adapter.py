#!/usr/bin/env python3
"""Records llama.cpp's results with an adapter in adapter.json: benches/agreement/adapter.py MODEL.gguf ADAPTER.gguf

Set-up as for ../peer.py. The number of a window of text.txt is the sum of the negative natural logarithms of the
probabilities of all tokens except the first, with the adapter and without it. To compare caro with it:

    CARO_ADAPTER_FILE=ADAPTER.gguf cargo test --release --lib -- --ignored --nocapture the_adapter_agrees
"""
import hashlib, json, os, sys

from perplexity import HERE, windows


def main():
    model, adapter = sys.argv[1:3]
    said = {
        "model": os.path.basename(model),
        "adapter_sha256": hashlib.sha256(open(adapter, "rb").read()).hexdigest(),
        "without": windows(model)[1],
        "with": windows(model, adapter)[1],
    }
    with open(os.path.join(HERE, "adapter.json"), "w") as f:
        json.dump(said, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
