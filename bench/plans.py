#!/usr/bin/env python3
"""Speed and bytes of plans side by side: runs train_gpt under each plan in turn, several rounds, and prints medians.

    bench/plans.py build/demo/bin/train_gpt [--rounds 3] [--steps 6] [--plans ddp,zero3,...] -- OPTIONS OF train_gpt

A plan is a name that train_gpt knows; memory@0.05 is the memory plan within 5% of the fastest. The last column is the
speed over that of the fastest baseline (the plans without a solver objective)."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile

BASELINES = ["ddp", "zero1", "zero2", "zero3", "megatron", "megatron-sp"]


def run(program, plan, options, steps):
    name, _, slowdown = plan.partition("@")
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, "--no-table", "--sample", "0", "--steps", str(steps), "--plan", name, "--json", out.name]
        command += ["--slowdown", slowdown] if slowdown else []
        done = subprocess.run(command + options, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command + options)} failed: {done.stderr.strip().splitlines()[-1]}")
        return json.load(open(out.name))


def main():
    arguments = sys.argv[1:]
    options = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--plans", default=",".join(BASELINES + ["time", "memory", "memory@0.05"]))
    a = parser.parse_args(arguments)
    plans = a.plans.split(",")
    speed = {p: [] for p in plans}
    last = {}
    for r in range(a.rounds):
        for p in plans:
            last[p] = run(a.program, p, options, a.steps)
            speed[p].append(last[p]["tokens_per_s"])
            print(f"round {r + 1}: {p} {speed[p][-1]:.0f} tokens/s", file=sys.stderr)
    median = {p: statistics.median(s) for p, s in speed.items()}
    fastest = max((median[p] for p in plans if p in BASELINES), default=max(median.values()))
    mib = 1 << 20
    print(f"{'plan':<12} {'tokens/s':>9} {'least':>7} {'most':>7} {'model ms':>9} {'peak MiB':>9} {'redundant':>9} {'speed':>6}")
    for p in plans:
        plan, ranks = last[p]["plan"], last[p]["plan"]["per_rank"]
        print(f"{p:<12} {median[p]:>9.0f} {min(speed[p]):>7.0f} {max(speed[p]):>7.0f} {1e3 * plan['step_time_s']:>9.1f} "
              f"{max(k['peak_live'] for k in ranks) / mib:>9.2f} {max(k['redundant'] for k in ranks) / mib:>9.2f} "
              f"{median[p] / fastest:>6.2f}")


main()
