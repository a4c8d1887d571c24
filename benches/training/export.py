#!/usr/bin/env python3
"""Writes a trained adapter as a GGUF file that caro and llama.cpp read: export.py MODEL.gguf STATE OUT.gguf [--alpha A] [--a KIND]

A is written as Q8_0 (or as `--a` says), B as F16, because its rows are only as long as the rank. The file has the
SHA-256 of its base model.
"""
import argparse, hashlib
import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("state")
    parser.add_argument("out")
    parser.add_argument("--alpha", type=float, default=32)
    parser.add_argument("--a", default="Q8_0", help="kind of A: F16, Q8_0, Q5_0, Q4_0")
    args = parser.parse_args()
    state = torch.load(args.state, weights_only=False, map_location="cpu")
    base = GGUFReader(args.model).fields["general.architecture"]
    writer = GGUFWriter(args.out, bytes(base.parts[base.data[0]]).decode())
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", args.alpha)
    writer.add_string("caro.adapter.base_sha256", sha256(args.model))
    writer.add_string("caro.adapter.prompt", "1")
    writer.add_uint32("caro.adapter.step", state["step"])
    kind, size = GGMLQuantizationType[args.a], 0
    for name, value in sorted(state["adapter"].items()):
        _, block, matrix, half = name.split(".")  # blocks.N.attn_q.a
        numbers = value.float().numpy()
        how = kind if half == "a" else GGMLQuantizationType.F16
        packed = numbers.astype(np.float16) if how == GGMLQuantizationType.F16 else quantize(numbers, how)
        size += packed.nbytes
        raw = None if how == GGMLQuantizationType.F16 else how
        writer.add_tensor(f"blk.{block}.{matrix}.weight.lora_{half}", packed, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{args.out}: {size / 1e6:.1f} MB, step {state['step']}")


if __name__ == "__main__":
    main()
