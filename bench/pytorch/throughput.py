#!/usr/bin/env python3
"""Tokens per second of training steps: train_gpt against PyTorch at its best setting, alternating in one run.

GPT-2 of 12 layers, 8 heads, hidden 256, 4096 words, batch 4 x 64 tokens, AdamW, no dropout, float. Both sides run in
turn for some rounds; medians and their ratio are printed, and the exit status is 1 where no train_gpt reaches the best
PyTorch. With --tune PyTorch's settings are first tried on this machine one by one, and each that helps is kept; without
it a fixed choice is taken. Without a train_gpt, PyTorch alone is measured.

    apt-get install python3-torch libopenblas0-openmp
    /usr/bin/python3 throughput.py [path/to/train_gpt] [--tune] [--ours="--ranks 2 --plan time"]...
"""

import argparse
import glob
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS, HEADS, HIDDEN, VOCAB, BATCH, SEQ, LR = 12, 8, 256, 4096, 4, 64, 1e-3
CORES = len(os.sched_getaffinity(0))

# Where a setting starts from: all cores, waiting threads sleep, the OpenMP OpenBLAS, its kernel as it detects it.
PLAIN = {"steps": "usual", "attend": "fused", "foreach": False, "keep_gradients": False, "flush_denormal": False,
         "trace": False, "env": {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(CORES)}}

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33)}

# Kept in the one tuning on two cores of an EPYC, 3% each, which is near the noise of that machine: use --tune where it
# matters. OpenBLAS takes the kernel that it detects (a set OPENBLAS_CORETYPE is dropped): the others were no faster.
WON = {"ATEN_CPU_CAPABILITY": "avx512", **KEEP_MEMORY}

# Tried in this order on top of what was kept before.
USUAL_TRIALS = [
    ("OPENBLAS_CORETYPE=SkylakeX", {"env": {"OPENBLAS_CORETYPE": "SkylakeX"}}),
    ("OPENBLAS_CORETYPE=Haswell", {"env": {"OPENBLAS_CORETYPE": "Haswell"}}),
    ("ATEN_CPU_CAPABILITY=avx512", {"env": {"ATEN_CPU_CAPABILITY": "avx512"}}),
    ("malloc keeps its memory", {"env": KEEP_MEMORY}),
    ("OMP_PROC_BIND", {"env": {"OMP_PROC_BIND": "true"}}),
    ("set_flush_denormal", {"flush_denormal": True}),
    ("attention as written", {"attend": "plain"}),
    ("optimizer foreach", {"foreach": True}),
    ("gradients kept and zeroed", {"keep_gradients": True}),
    ("TorchScript trace", {"trace": True}),
]
# The threads over the batch start from the usual step's winners.
THREADED_TRIALS = [("malloc keeps its memory", {"env": KEEP_MEMORY}),
                        ("attention as written", {"attend": "plain"}),
                        ("set_flush_denormal", {"flush_denormal": True})]


def worker(setting, steps):
    """Runs one setting in this process and prints its mean and least seconds a step, after warming up."""
    import torch

    import gpt2_torch
    import torch_steps

    torch.manual_seed(0)
    torch.set_num_threads(CORES)
    torch.set_flush_denormal(setting["flush_denormal"])
    attend = gpt2_torch.attend_plain if setting["attend"] == "plain" else gpt2_torch.attend_fused
    model = gpt2_torch.GPT2(VOCAB, SEQ, LAYERS, HIDDEN, HEADS, attend)
    gpt2_torch.load_weights(model, gpt2_torch.random_weights(model, 1))
    tokens, targets = torch.randint(VOCAB, (BATCH, SEQ)), torch.randint(VOCAB, (BATCH, SEQ))
    if setting["steps"] == "threads":
        step = torch_steps.threaded_step(model, LR, min(CORES, BATCH))
    else:
        runner = torch.jit.trace(model, (tokens, targets)) if setting["trace"] else model
        step = torch_steps.usual_step(runner, LR, setting["foreach"], setting["keep_gradients"])
    for _ in range(3):
        step(tokens, targets)
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        loss = step(tokens, targets)
        seconds.append(time.perf_counter() - begin)
    with open("/proc/self/maps") as maps:
        blas = sorted({line.split()[-1] for line in maps if "blas" in line})
    print(json.dumps({"mean": statistics.mean(seconds), "least": min(seconds), "loss": loss,
                      "blas": blas}))


def openmp_openblas():
    """Returns the folder of the OpenMP build of OpenBLAS, which torch then loads whatever the system's alternative."""
    folders = glob.glob("/usr/lib/*/openblas-openmp")
    if not folders:
        sys.exit("the OpenMP build of OpenBLAS is missing: apt-get install libopenblas0-openmp")
    return folders[0]


def run_torch(setting, steps):
    env = dict(os.environ, LD_LIBRARY_PATH=openmp_openblas())
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS"):  # only what a setting asks for
        env.pop(name, None)
    env.update(setting["env"])
    command = [sys.executable, os.path.abspath(__file__), "--worker", json.dumps(setting), "--steps", str(steps)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    result = json.loads(done.stdout.splitlines()[-1])
    if not any("openblas-openmp" in path for path in result["blas"]):
        sys.exit(f"torch loaded {result['blas']}, not the OpenMP build of OpenBLAS")
    return result


def run_ours(program, options, steps):
    """Returns the tokens per second that train_gpt reports."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [program, "--layers", LAYERS, "--hidden", HIDDEN, "--heads", HEADS, "--seq", SEQ, "--batch", BATCH,
                   "--vocab", VOCAB, "--steps", steps, "--lr", LR, "--warmup", 0, "--decay", "none", "--clip", 0,
                   "--dropout", 0, "--precision", "float", "--json", report, *shlex.split(options)]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"train_gpt failed: {shlex.join(map(str, command))}\n{done.stderr or done.stdout}")
        with open(report) as file:
            return json.load(file)["tokens_per_s"]


def busy_seconds():
    """Returns the processor seconds that all processes of the machine have used since it started."""
    with open("/proc/stat") as file:
        user, nice, system = map(int, file.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def changed(setting, change):
    env = {**setting["env"], **change.get("env", {})}
    return {**setting, **change, "env": env}


def tune(setting, trials, steps):
    """Keeps each trial that beats the best so far by 2%, both measured in turn; returns the best setting.

    Compares the fastest step of each: other work on the machine slows single steps, and would choose at random.
    """
    for name, change in trials:
        candidate = changed(setting, change)
        try:
            ours, theirs = [], []
            for _ in range(2):
                theirs.append(run_torch(setting, steps)["least"])
                ours.append(run_torch(candidate, steps)["least"])
        except RuntimeError as error:
            print(f"  {name:40} failed: {str(error).strip().splitlines()[-1]}")
            continue
        kept = min(ours) < 0.98 * min(theirs)
        print(f"  {name:40} {1e3 * min(ours):7.1f} ms, without {1e3 * min(theirs):7.1f} ms{'  kept' if kept else ''}")
        if kept:
            setting = candidate
    return setting


def describe(setting):
    parts = [f"{k}={v}" for k, v in setting["env"].items()]
    parts += [k if v is True else f"{k}={v}" for k, v in setting.items() if k != "env" and v != PLAIN[k]]
    return " ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train_gpt", nargs="?", help="the built example; without it PyTorch alone is measured")
    parser.add_argument("--ours", action="append", help="options of train_gpt for one more contestant: ranks, plan")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="timed steps in a run")
    parser.add_argument("--tune", action="store_true", help="try PyTorch's settings first (minutes)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train_gpt and not os.access(arguments.train_gpt, os.X_OK):
        sys.exit(f"{arguments.train_gpt} is no executable: build the example train_gpt and give its path")
    if arguments.worker:
        return worker(json.loads(arguments.worker), arguments.steps)

    usual = changed(PLAIN, {"env": WON})
    threaded = changed(usual, {"steps": "threads"})
    if arguments.tune:
        print(f"PyTorch's settings, fastest step on {CORES} cores:")
        usual = tune(PLAIN, USUAL_TRIALS, 10)
        threaded = changed(usual, {"foreach": False, "keep_gradients": False, "trace": False, "steps": "threads"})
        threaded = tune(threaded, THREADED_TRIALS, 10)

    def torch_runner(setting):
        return lambda: BATCH * SEQ / run_torch(setting, arguments.steps)["mean"]

    contestants = {"PyTorch, usual step": torch_runner(usual), "PyTorch, threads over the batch": torch_runner(threaded)}
    for options in arguments.ours or ["--ranks 1 --plan single", f"--ranks {CORES} --plan time"]:
        if arguments.train_gpt:
            contestants["train_gpt " + options] = lambda options=options: run_ours(
                arguments.train_gpt, options, arguments.steps)
    rates = {name: [] for name in contestants}
    begin, busy, own = time.perf_counter(), busy_seconds(), children_seconds()
    for _ in range(arguments.rounds):
        for name, run in contestants.items():
            rates[name].append(run())
    foreign = (busy_seconds() - busy - (children_seconds() - own)) / (time.perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max(value for name, value in medians.items() if name.startswith("PyTorch"))

    print(f"PyTorch, usual step: {describe(usual)}\nPyTorch, threads over the batch: {describe(threaded)}")
    print(f"\n{'':40} {'tokens/s':>9} {'ms/step':>8}  {'of best PyTorch':>15}   range of {arguments.rounds} rounds")
    for name, median in medians.items():
        print(f"{name:40} {median:9.0f} {1e3 * BATCH * SEQ / median:8.1f}  {median / best:15.2f}   "
              f"{min(rates[name]):.0f} to {max(rates[name]):.0f}")
    if foreign > 0.1 * CORES:
        print(f"Other processes kept {foreign:.1f} of {CORES} cores busy meanwhile: do not trust these figures.")
    ours = [value for name, value in medians.items() if name.startswith("train_gpt")]
    return 1 if ours and max(ours) < best else 0


if __name__ == "__main__":
    sys.exit(main())
