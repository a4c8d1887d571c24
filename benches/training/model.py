"""A Qwen2 decoder over the weights of a GGUF file, with low-rank adapters on all matrices of its blocks.

The weights are those of the file, dequantised and frozen, so that an adapter is trained on the weights it will be used
with. Several short examples are processed at once after a shared prefix (see `pack`).
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from gguf import GGUFReader, dequantize
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
# The pattern by which Qwen2 splits text before byte-pair encoding, which `tokenizer.ggml.pre = "qwen2"` names.
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class LowRank(nn.Module):
    """y = x W^T + bias + (alpha / rank) x A^T B^T, with W and bias frozen."""

    def __init__(self, weight, bias, rank, alpha):
        super().__init__()
        self.weight, self.bias, self.scale = weight, bias, alpha / rank
        self.a = nn.Parameter(torch.empty(rank, weight.shape[1]))
        self.b = nn.Parameter(torch.zeros(weight.shape[0], rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        low = F.linear(x, self.a.to(x.dtype))
        return F.linear(x, self.weight, self.bias) + F.linear(low, (self.b * self.scale).to(x.dtype))


class Qwen2(nn.Module):
    """The decoder. `forward` takes packed token ids, and returns the normed last hidden states of wanted positions."""

    def __init__(self, path, rank=16, alpha=32, dtype=torch.bfloat16, device="cpu"):
        super().__init__()
        reader = GGUFReader(path)
        self.fields = reader.fields
        number = lambda key: self.field(f"qwen2.{key}")
        self.heads, self.kv_heads = number("attention.head_count"), number("attention.head_count_kv")
        self.width, self.depth = number("embedding_length"), number("block_count")
        self.eps = number("attention.layer_norm_rms_epsilon")
        self.head_dim, self.dtype = self.width // self.heads, dtype
        base = number("rope.freq_base")
        self.frequencies = 1.0 / base ** (torch.arange(0, self.head_dim, 2, device=device).float() / self.head_dim)
        tensors = {t.name: t for t in reader.tensors}

        def tensor(name, dtype=dtype):
            t = tensors[name]
            numbers = dequantize(t.data, t.tensor_type).reshape(tuple(int(n) for n in reversed(t.shape)))
            return torch.from_numpy(numbers.copy()).to(dtype).to(device)

        self.embedding = tensor("token_embd.weight")
        self.head = tensor("output.weight") if "output.weight" in tensors else self.embedding
        self.norm = tensor("output_norm.weight", torch.float32)
        self.norms, blocks = [], []
        for i in range(self.depth):
            name = lambda part: f"blk.{i}.{part}"
            self.norms.append((tensor(name("attn_norm.weight"), torch.float32), tensor(name("ffn_norm.weight"), torch.float32)))
            blocks.append(nn.ModuleDict({
                m: LowRank(tensor(name(f"{m}.weight")), tensor(name(f"{m}.bias")) if name(f"{m}.bias") in tensors else None, rank, alpha)
                for m in MATRICES
            }))
        self.blocks = nn.ModuleList(blocks).to(device)

    def field(self, key):
        field = self.fields[key]
        return field.parts[field.data[0]][0].item()

    def rms(self, x, weight):
        x = x.float()
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * weight).to(self.dtype)

    def turned(self, x, cos, sin):
        """Applies rotary position embedding, by halves; x is heads x tokens x head_dim."""
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, ids, positions, mask, wanted):
        """ids, positions: [tokens]; mask: [tokens, tokens] to add to the scores; wanted: indices. Returns [len(wanted), width]."""
        angles = positions.float()[:, None] * self.frequencies
        cos, sin = angles.cos().to(self.dtype), angles.sin().to(self.dtype)
        x = F.embedding(ids, self.embedding)
        for block, (attention_norm, ffn_norm) in zip(self.blocks, self.norms):
            h = self.rms(x, attention_norm)
            heads = lambda m, n: block[m](h).view(-1, n, self.head_dim).transpose(0, 1)
            q, k, v = heads("attn_q", self.heads), heads("attn_k", self.kv_heads), heads("attn_v", self.kv_heads)
            q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
            repeat = self.heads // self.kv_heads
            k, v = k.repeat_interleave(repeat, 0), v.repeat_interleave(repeat, 0)
            attended = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask[None, None])[0]
            x = x + block["attn_output"](attended.transpose(0, 1).reshape(-1, self.width))
            h = self.rms(x, ffn_norm)
            x = x + block["ffn_down"](F.silu(block["ffn_gate"](h)) * block["ffn_up"](h))
        return self.rms(x[wanted], self.norm)

    def loss(self, batch, reduction="mean"):
        """Returns the cross-entropy of the tokens of the answers only."""
        hidden = self(batch["ids"], batch["positions"], batch["mask"], batch["wanted"])
        return F.cross_entropy(F.linear(hidden, self.head).float(), batch["targets"], reduction=reduction)

    def adapter(self):
        """Returns the trained parameters by name."""
        return {n: p for n, p in self.named_parameters() if p.requires_grad}


def adapter(path, alpha):
    """Yields (name, numbers) of each A and B in an adapter's file, named as by `Qwen2.adapter`; checks its alpha."""
    reader = GGUFReader(path)
    written = reader.fields["adapter.lora.alpha"]
    assert written.parts[written.data[0]][0].item() == alpha, "an adapter of another alpha"
    for t in reader.tensors:
        block, matrix, half = t.name.removeprefix("blk.").replace(".weight.lora_", ".").split(".")
        numbers = dequantize(t.data, t.tensor_type).reshape(tuple(int(n) for n in reversed(t.shape)))
        yield f"blocks.{block}.{matrix}.{half}", torch.from_numpy(numbers.copy())


def tokenizer(fields):
    """Returns the byte-pair tokenizer of a GGUF file whose `tokenizer.ggml.pre` is qwen2."""
    texts = lambda key: [bytes(fields[key].parts[i]).decode() for i in fields[key].data]
    assert texts("tokenizer.ggml.pre") == ["qwen2"], "only qwen2's way of splitting is known"
    tokens, merges = texts("tokenizer.ggml.tokens"), texts("tokenizer.ggml.merges")
    pairs = [tuple(m.split(" ")) for m in merges]
    made = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, pairs))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<|im_start|>", "<|im_end|>", "<|endoftext|>")])
    return made


def pack(prefix, examples, dtype, device="cpu"):
    """Packs (prompt ids, answer ids) after one prefix: each attends to the prefix and itself, and follows the prefix.

    The results are the same as for each example alone, without padding. Returns ids, positions, mask, wanted, targets.
    """
    ids, positions, segment = list(prefix), list(range(len(prefix))), [0] * len(prefix)
    wanted, targets = [], []
    for number, (prompt, answer) in enumerate(examples, 1):
        start, text = len(ids), prompt + answer
        ids += text
        positions += range(len(prefix), len(prefix) + len(text))
        segment += [number] * len(text)
        wanted += [start + len(prompt) - 1 + j for j in range(len(answer))]
        targets += answer
    segment = torch.tensor(segment)
    seen = ((segment[:, None] == segment[None, :]) | (segment[None, :] == 0)).tril()
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
    put = lambda numbers: torch.tensor(numbers, device=device)
    return {"ids": put(ids), "positions": put(positions), "mask": mask.to(device), "wanted": put(wanted), "targets": put(targets)}
