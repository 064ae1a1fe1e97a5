"""GPT-2 in plain PyTorch: the model that train_gpt's losses and speed are held against.

Parameter names and shapes are those of Hugging Face's GPT-2, so that one safetensors file serves both sides; a matrix is
stored [in, out]. Written for PyTorch 1.13, which Debian 12 ships: no transformers package, no newer attention kernels.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Conv1D(nn.Module):
    """y = x W + b with W stored [in, out], as GPT-2 names and stores its matrices."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):  # [rows, in] -> [rows, out]
        return torch.addmm(self.bias, x, self.weight)


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(hidden, 3 * hidden)
        self.c_proj = Conv1D(hidden, hidden)

    def forward(self, x, mask, attend):  # x [batch*seq, hidden], mask [seq, seq]
        rows, hidden = x.shape
        seq = mask.shape[0]
        qkv = self.c_attn(x).view(rows // seq, seq, 3, self.heads, hidden // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each [batch, heads, seq, hidden/heads]
        return self.c_proj(attend(q, k, v, mask).transpose(1, 2).reshape(rows, hidden))


class Mlp(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.c_fc = Conv1D(hidden, 4 * hidden)
        self.c_proj = Conv1D(4 * hidden, hidden)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden, eps=1e-5)
        self.attn = Attention(hidden, heads)
        self.ln_2 = nn.LayerNorm(hidden, eps=1e-5)
        self.mlp = Mlp(hidden)

    def forward(self, x, mask, attend):
        x = x + self.attn(self.ln_1(x), mask, attend)
        return x + self.mlp(self.ln_2(x))


def attend_fused(q, k, v, mask):
    """Attention with scale and mask inside one baddbmm; mask is [seq, seq], 0 or -inf."""
    batch, heads, seq, width = q.shape
    q, k, v = (t.reshape(batch * heads, seq, width) for t in (q, k, v))
    scores = torch.baddbmm(mask.expand(batch * heads, seq, seq), q, k.transpose(1, 2), alpha=1 / math.sqrt(width))
    return torch.bmm(torch.softmax(scores, -1), v).view(batch, heads, seq, width)


def attend_plain(q, k, v, mask):
    """Attention as it is written down; mask is [seq, seq], 0 or -inf."""
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1])) + mask
    return torch.softmax(scores, -1) @ v


class GPT2(nn.Module):
    def __init__(self, vocab, seq, layers, hidden, heads, attend=attend_fused):
        super().__init__()
        self.attend = attend
        self.wte = nn.Embedding(vocab, hidden)
        self.wpe = nn.Embedding(seq, hidden)
        self.h = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden, eps=1e-5)
        self.register_buffer("mask", torch.full((seq, seq), float("-inf")).triu(1), persistent=False)

    def forward(self, tokens, targets):
        """tokens and targets [batch, seq] of integers -> mean cross-entropy over all tokens, in nats."""
        batch, seq = tokens.shape
        x = (self.wte(tokens) + self.wpe.weight[:seq]).view(batch * seq, -1)
        mask = self.mask[:seq, :seq]
        for block in self.h:
            x = block(x, mask, self.attend)
        logits = self.ln_f(x) @ self.wte.weight.t()  # [batch*seq, vocab]
        return F.cross_entropy(logits, targets.reshape(-1))


def random_weights(model, seed, dtype=np.float32):
    """Returns {name: array} for the parameters of model: GPT-2's N(0, 0.02), around 1 for the scales of layer norms.

    Biases too are drawn, where GPT-2 starts them at 0: an exchange of two of them then shows in the first loss.
    """
    draw = np.random.default_rng(seed)
    weights = {}
    for name, parameter in model.named_parameters():
        centre = 1.0 if ".ln_" in "." + name and name.endswith("weight") else 0.0
        weights[name] = (centre + 0.02 * draw.standard_normal(tuple(parameter.shape))).astype(dtype)
    return weights


def load_weights(model, weights):
    """Copies {name: array} into model; names may start with "transformer."; missing or foreign names raise."""
    state = {name.removeprefix("transformer."): torch.from_numpy(array) for name, array in weights.items()}
    state.pop("lm_head.weight", None)  # some files hold the tied head a second time
    model.load_state_dict(state)


def parameter_groups(model, weight_decay):
    """AdamW's groups: decay on matrices and embeddings, none on biases and layer norms."""
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def train(model, batches, lr, accumulate=1):
    """One AdamW step for each (tokens, targets) of batches, in `accumulate` equal parts; returns the mean losses."""
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.01), lr=lr, betas=(0.9, 0.999), eps=1e-8)
    losses = []
    for tokens, targets in batches:
        optimizer.zero_grad()
        total = 0.0
        for part_tokens, part_targets in zip(tokens.chunk(accumulate), targets.chunk(accumulate)):
            loss = model(part_tokens, part_targets) / accumulate
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
