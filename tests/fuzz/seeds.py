#!/usr/bin/env python3
"""Writes the two corpora that are no text: small GGUF files, a model's and an adapter's. `python3 seeds.py`, in this folder."""
import pathlib
import struct


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def value(item):
    if isinstance(item, str):
        return struct.pack("<I", 8) + text(item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, list):
        return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(text, item))
    return struct.pack("<II", 4, item)


def gguf(meta, tensors):
    """A file of these keys and of tensors of f32, all of a half; sizes are the fastest first."""
    head, data = b"", b""
    for name, sizes in tensors.items():
        count = 1
        for size in sizes:
            count *= size
        data += bytes(-len(data) % 32)
        head += text(name) + struct.pack("<I", len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
        head += struct.pack("<IQ", 0, len(data))
        data += struct.pack("<f", 0.5) * count
    keys = b"".join(text(key) + value(item) for key, item in meta.items())
    whole = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + keys + head
    return whole + bytes(-len(whole) % 32) + data


MODEL = {
    "general.architecture": "qwen2",
    "qwen2.embedding_length": 32,
    "qwen2.attention.head_count": 2,
    "qwen2.attention.head_count_kv": 1,
    "qwen2.attention.layer_norm_rms_epsilon": 1e-6,
    "qwen2.feed_forward_length": 32,
    "qwen2.block_count": 1,
    "tokenizer.ggml.tokens": ["a", "b", "", "ab"],
}
ADAPTER = {
    "general.type": "adapter",
    "adapter.type": "lora",
    "general.architecture": "qwen2",
    "adapter.lora.alpha": 2.0,
    "caro.adapter.prompt": "1",
}
HALVES = {"blk.0.attn_k.weight.lora_a": (32, 2), "blk.0.attn_k.weight.lora_b": (2, 16)}
FILES = {
    "gguf/qwen2.gguf": (MODEL, {"token_embd.weight": (32, 4)}),
    "gguf/no-tensors.gguf": ({"general.alignment": 64, "a": [], "": 0.5}, {}),
    "adapter/lora.gguf": (ADAPTER, HALVES),
    "adapter/half.gguf": (ADAPTER, {"blk.0.attn_k.weight.lora_a": (32, 2)}),
}

if __name__ == "__main__":
    for name, parts in FILES.items():
        path = pathlib.Path("corpus", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gguf(*parts))
