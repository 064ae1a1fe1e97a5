#!/usr/bin/env python3
"""Shows that train_gpt computes what PyTorch computes: the losses of 20 AdamW steps from the same weights and tokens.

Draws random weights into a safetensors file under Hugging Face's names, lets train_gpt train from them and save the
tokens of each step, trains PyTorch's GPT-2 on the same, and compares the losses step by step: each must agree within
2e-5 in float (1e-9 in double), relative or absolute, whichever is met. Exits with 1 where one does not.

    apt-get install python3-torch
    /usr/bin/python3 compare_losses.py path/to/train_gpt [--data FILE]
"""

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import torch

import gpt2_torch
from safetensors_file import read_safetensors, write_safetensors

TOLERANCE = {"float": 2e-5, "double": 1e-9}
# A rate at which 20 steps move the loss far: an error in one gradient must not hide below the tolerance.
LR = 3e-3
# Options of the case, and those of train_gpt that say how it is to be computed.
CASES = [
    ({}, "--ranks 1 --plan single"),
    ({"accumulate": 2}, "--ranks 1 --plan single"),
    ({}, "--ranks 2 --plan zero2"),
    ({}, "--ranks 4 --plan zero2"),
    ({}, "--ranks 2 --plan megatron"),
    ({}, "--ranks 4 --plan megatron"),
    ({}, "--ranks 2 --plan memory"),
    ({}, "--ranks 4 --plan memory"),
    ({"accumulate": 2}, "--ranks 4 --plan memory"),
    ({"precision": "double"}, "--ranks 1 --plan single"),
    ({"precision": "double", "accumulate": 2}, "--ranks 4 --plan memory"),
]
SIZES = {"layers": 2, "hidden": 64, "heads": 4, "seq": 32, "batch": 4, "vocab": 256, "steps": 20, "accumulate": 1,
         "precision": "float", "seed": 1}


def new_model(sizes):
    return gpt2_torch.GPT2(sizes["vocab"], sizes["seq"], sizes["layers"], sizes["hidden"], sizes["heads"])


def train_theirs(sizes, weights, tokens_file):
    """Trains PyTorch on the steps that train_gpt saved; returns the losses."""
    tensors = read_safetensors(tokens_file)
    steps = sorted(int(name.split(".")[1]) for name in tensors if name.startswith("tokens."))
    if len(steps) != sizes["steps"]:
        raise ValueError(f"--save-tokens held {len(steps)} steps, not {sizes['steps']}")
    batches = []
    for step in steps:
        tokens, targets = (tensors[f"{kind}.{step}"] for kind in ("tokens", "targets"))
        expected = (sizes["accumulate"] * sizes["batch"], sizes["seq"])
        if tokens.shape != expected or targets.shape != expected:
            raise ValueError(f"tokens of step {step} have shape {tokens.shape}, not {expected}")
        if not (tokens[:, 1:] == targets[:, :-1]).all():
            raise ValueError(f"targets of step {step} are not its tokens moved by one")
        batches.append((torch.from_numpy(tokens).long(), torch.from_numpy(targets).long()))
    model = new_model(sizes).to(torch.float64 if sizes["precision"] == "double" else torch.float32)
    gpt2_torch.load_weights(model, weights)
    return gpt2_torch.train(model, batches, LR, sizes["accumulate"])


def train_ours(program, sizes, options, data, folder, weights_file):
    """Runs train_gpt; returns its losses and the file of its tokens."""
    report, tokens = os.path.join(folder, "report.json"), os.path.join(folder, "tokens.safetensors")
    command = [program]
    for name, value in sizes.items():
        command += [f"--{name}", str(value)]
    command += ["--lr", str(LR), "--warmup", "0", "--decay", "none", "--clip", "0", "--dropout", "0"]
    command += ["--weights", weights_file, "--save-tokens", tokens, "--json", report, *shlex.split(options)]
    command += ["--data", data] if data else []
    for old in (report, tokens):
        if os.path.exists(old):
            os.remove(old)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} exited with {done.returncode}: {done.stderr or done.stdout}")
    with open(report) as file:
        return json.load(file)["loss"], tokens


def difference(ours, theirs):
    """The lesser of the absolute and the relative difference; infinite where either is no number."""
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        return math.inf
    return abs(ours - theirs) / max(1.0, abs(theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train_gpt", help="the built example")
    parser.add_argument("--data", help="a text file; without it train_gpt's own default")
    parser.add_argument("--verbose", action="store_true", help="print the losses of every step")
    arguments = parser.parse_args()
    if not os.access(arguments.train_gpt, os.X_OK):
        sys.exit(f"{arguments.train_gpt} is no executable: build the example train_gpt and give its path")

    failed = 0
    print(f"{'case':58} {'first loss':>10} {'last loss':>10} {'greatest difference':>20}  step  tolerance")
    with tempfile.TemporaryDirectory() as folder:
        for changes, options in CASES:
            sizes = {**SIZES, **changes}
            dtype = np.float64 if sizes["precision"] == "double" else np.float32
            weights = gpt2_torch.random_weights(new_model(sizes), sizes["seed"], dtype)
            weights_file = os.path.join(folder, "weights.safetensors")
            write_safetensors(weights_file, weights)
            name = " ".join([options, *(f"--{k} {v}" for k, v in changes.items())])
            try:
                ours, tokens = train_ours(arguments.train_gpt, sizes, options, arguments.data, folder, weights_file)
                theirs = train_theirs(sizes, weights, tokens)
                if len(ours) != len(theirs):
                    raise ValueError(f"train_gpt reported {len(ours)} losses, not {len(theirs)}")
            except (RuntimeError, ValueError, KeyError, OSError) as error:
                failed += 1
                print(f"{name:58} failed: {error}")
                continue
            differences = [difference(a, b) for a, b in zip(ours, theirs)]
            step = max(range(len(differences)), key=differences.__getitem__)
            tolerance = TOLERANCE[sizes["precision"]]
            bad = differences[step] > tolerance
            failed += bad
            print(f"{name:58} {theirs[0]:10.5f} {theirs[-1]:10.5f} {differences[step]:20.1e} {step + 1:5d}  {tolerance:.0e}"
                  f"{'  FAILED' if bad else ''}", flush=True)
            if arguments.verbose:
                for i, (a, b) in enumerate(zip(ours, theirs)):
                    print(f"    step {i + 1:2d}: train_gpt {a:.8f}  PyTorch {b:.8f}")
    print(f"{len(CASES) - failed} of {len(CASES)} cases agree with PyTorch {torch.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
