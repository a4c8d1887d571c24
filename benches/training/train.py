#!/usr/bin/env python3
"""Trains an adapter: train.py MODEL.gguf STATE [--until N] [--finish N] [options]

Continues from STATE if it exists, else from `--begin ADAPTER.gguf` (an adapter that was exported before). All pairs
are seen once before any is seen twice; the share of each target is fixed (SHARES). Changed files of pairs are read
again from time to time, so that new pairs are used too. The rate rises, stays, and falls to zero over the last
`--finish` steps: a run can be stopped at any step and finished later. STATE.jsonl beside STATE has a line for each
step, with the validation loss every 50 steps.
"""
import argparse, json, os, random, time
import torch
import data, model

SHARES = {"linux-gnu": 0.62, "macos-bsd": 0.15, "windows": 0.09, "linux-busybox": 0.05, "freebsd": 0.04, "fish": 0.02, "refusal": 0.06}


class Examples:
    """The training side. Draws the least seen pairs first, at random among those."""

    def __init__(self, seen, rng):
        self.seen, self.rng, self.read_at, self.groups, self.linux, self.validation = seen, rng, 0.0, {}, set(), []
        self.changed = 0.0
        self.refresh()

    def refresh(self):
        if time.time() - self.read_at < 600:
            return
        self.read_at = time.time()
        changed = max(path.stat().st_mtime for path in (data.ROOT / "platform-rules").rglob("*.toml"))
        if changed == self.changed:
            return  # reading and splitting takes as long as two steps
        self.changed = changed
        sides, _ = data.examples()
        self.groups = {}
        for e in sides["train"]:
            self.groups.setdefault("refusal" if e.pair == "refusal" else e.target, []).append(e)
        self.linux = {(e.pair, e.answer) for e in self.groups.get("linux-gnu", [])}
        self.validation = sides["validation"]

    def draw(self, count):
        """Draws `count` examples of one target, so that they share its prefix."""
        groups = [g for g in self.groups if g in SHARES]
        group = self.rng.choices(groups, [SHARES[g] for g in groups])[0]
        return self.least(self.groups[group], count)

    def least(self, found, count):
        """Returns the least seen pairs, first those that differ from Linux, each in its least seen wording."""
        pairs = {}
        for e in self.rng.sample(found, len(found)):
            pairs.setdefault(e.key if e.pair == "refusal" else e.pair, []).append(e)
        times = lambda e: self.seen.get(e.key, 0)
        order = lambda wordings: (sum(map(times, wordings)), wordings[0].target != "linux-gnu" and (wordings[0].pair, wordings[0].answer) in self.linux)
        return [min(wordings, key=times) for wordings in sorted(pairs.values(), key=order)[:count]]


class Batches:
    """Examples as packed tokens."""

    def __init__(self, tokenizer, dtype, device):
        self.tokenizer, self.dtype, self.device = tokenizer, dtype, device

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def make(self, examples):
        """Yields one packed batch for each target among the examples."""
        by = {}
        for e in examples:
            by.setdefault(e.target, []).append(e)
        for target, found in by.items():
            prefix = self.ids(f"<|im_start|>system\n{data.persona(target)}<|im_end|>\n")
            pairs = [(self.ids(f"<|im_start|>user\n{e.request}<|im_end|>\n<|im_start|>assistant\n"), self.ids(e.answer + "<|im_end|>")) for e in found]
            yield model.pack(prefix, pairs, self.dtype, self.device)


def save(path, net, optimizer, step, seen, rng):
    state = {"adapter": {n: p.detach().cpu() for n, p in net.adapter().items()}, "optimizer": optimizer.state_dict(), "step": step,
             "seen": seen, "rng": rng.getstate()}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def halves():
    """Returns true if this machine multiplies bf16 fast: with a GPU, or a CPU with AVX512-BF16 or AMX."""
    return torch.cuda.is_available() or torch.cpu.get_capabilities().get("avx512_bf16", False)


def validate(net, batches, examples, count):
    """Returns the mean loss per token of the answers in a fixed sample of the validation side."""
    chosen = sorted(examples, key=lambda e: e.key)
    chosen = [e for e in chosen if e.target == "linux-gnu"][:count] + [e for e in chosen if e.target != "linux-gnu"][:count // 2]
    total, tokens = 0.0, 0
    with torch.inference_mode():
        for batch in batches.make(chosen):
            total += net.loss(batch, "sum").item()
            tokens += len(batch["targets"])
    return total / max(1, tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("state")
    parser.add_argument("--until", type=int, default=10**9, help="the last step")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--finish", type=int, default=0, help="steps over which the rate falls to nothing; then the run ends")
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=float, default=32)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--begin", help="an adapter's GGUF file to begin from where there is no STATE")
    parser.add_argument("--out", help="where the state goes (default: STATE)")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(args.seed)
    dtype = torch.bfloat16 if halves() else torch.float32
    net = model.Qwen2(args.model, args.rank, args.alpha, dtype, device)
    batches = Batches(model.tokenizer(net.fields), dtype, device)
    parameters = list(net.adapter().values())
    optimizer = torch.optim.AdamW(parameters, lr=args.rate, betas=(0.9, 0.99), weight_decay=0.0)
    rng, seen, step = random.Random(args.seed), {}, 0
    if os.path.exists(args.state):
        state = torch.load(args.state, weights_only=False)
        named = net.adapter()
        for name, value in state["adapter"].items():
            named[name].data.copy_(value)
        if state.get("optimizer"):
            optimizer.load_state_dict(state["optimizer"])
        step, seen = state["step"], state["seen"]
        if state.get("rng"):
            rng.setstate(state["rng"])
    elif args.begin:
        named = net.adapter()
        for name, value in model.adapter(args.begin, args.alpha):
            named[name].data.copy_(value)
    out, first, began, tokens = args.out or args.state, step, time.time(), 0
    examples = Examples(seen, rng)
    print(f"{sum(p.numel() for p in parameters) / 1e6:.1f} M numbers, from step {step}, {sum(map(len, examples.groups.values()))} examples", flush=True)
    with open(out + ".jsonl", "a") as log:
        while step < args.until and time.time() - began < args.seconds and (not args.finish or step - first < args.finish):
            rate = args.rate * min(1, (step - first + 1) / args.warmup) if not args.finish else args.rate * (1 - (step - first) / args.finish)
            for group in optimizer.param_groups:
                group["lr"] = rate
            chosen = examples.draw(args.batch)
            total = 0.0
            made = list(batches.make(chosen))
            for batch in made:
                loss = net.loss(batch) / len(made)
                loss.backward()
                total += loss.item()
                tokens += len(batch["ids"])
            norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0).item()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            for e in chosen:
                seen[e.key] = seen.get(e.key, 0) + 1
            row = {"step": step, "group": chosen[0].target if chosen[0].pair != "refusal" else "refusal", "loss": round(total, 4), "norm": round(norm, 3),
                   "rate": rate, "seconds": round(time.time() - began, 1), "tokens": tokens, "seen": len(seen)}
            if step % 50 == 0:
                row["validation"] = round(validate(net, batches, examples.validation, 80), 4)
            log.write(json.dumps(row) + "\n")
            log.flush()
            if step % 25 == 0:
                save(out, net, optimizer, step, seen, rng)
                examples.refresh()
    save(out, net, optimizer, step, seen, rng)


if __name__ == "__main__":
    main()
