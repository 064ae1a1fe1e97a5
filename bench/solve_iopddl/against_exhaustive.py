#!/usr/bin/env python3
"""Small random instances with forbidden pairs, ties, reversed, parallel and self edges, and limits that only just do or do
not: the program's answer to each against exhaustive search.

    bench/solve_iopddl/against_exhaustive.py build/bench/bin/bench_solve_iopddl [--count 300] [--seed 1]
"""
import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile

FORBIDDEN = 10**18


def drawn(dice):
    nodes = dice.randint(1, 6)
    sizes = [dice.randint(1, 4) for _ in range(nodes)]
    cost = lambda: dice.choice([0, 1, 2, 5, FORBIDDEN]) if dice.random() < 0.3 else dice.randint(0, 20)
    edges = [[dice.randrange(nodes), dice.randrange(nodes)] for _ in range(dice.randint(0, 9))]
    pair = lambda: FORBIDDEN if dice.random() < 0.2 else dice.randint(0, 9)
    return {
        "name": "drawn",
        "nodes": {
            "intervals": [[dice.randint(0, 8), dice.randint(0, 9)] for _ in range(nodes)],
            "costs": [[cost() for _ in range(k)] for k in sizes],
            "usages": [[dice.randint(0, 9) for _ in range(k)] for k in sizes],
        },
        "edges": {"nodes": edges, "costs": [[pair() for _ in range(sizes[u] * sizes[v])] for u, v in edges]},
    }


def judged(problem, choice):
    """Cost and peak of a choice; a cost of FORBIDDEN or more is forbidden."""
    nodes, edges = problem["nodes"], problem["edges"]
    cost = sum(c[s] for c, s in zip(nodes["costs"], choice))
    for (u, v), table in zip(edges["nodes"], edges["costs"]):
        cost += table[choice[u] * len(nodes["costs"][v]) + choice[v]]
    held = [
        sum(u[s] for (a, b), u, s in zip(nodes["intervals"], nodes["usages"], choice) if a <= t < b) for t in range(10)
    ]
    return cost, max(held)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("program")
    words.add_argument("--count", type=int, default=300)
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    dice = random.Random(asked.seed)
    wrong = infeasible = 0
    for n in range(asked.count):
        problem = drawn(dice)
        choices = itertools.product(*[range(len(c)) for c in problem["nodes"]["costs"]])
        legal = [x for x in (judged(problem, c) for c in choices) if x[0] < FORBIDDEN]
        limit = max(0, dice.choice(sorted({p for _, p in legal})) + dice.choice([0, -1])) if legal else 5
        problem["usage_limit"] = limit
        truth = min((c for c, p in legal if p <= limit), default=None)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"problem": problem}, file)
            file.flush()
            said = subprocess.run([asked.program, file.name, "10"], capture_output=True, text=True, check=False)
        choice = json.loads(said.stdout.strip().splitlines()[-1])
        cost, peak = judged(problem, choice) if choice else (None, 0)
        infeasible += truth is None
        if cost != truth or peak > limit:
            wrong += 1
            print(f"instance {n}: {cost} at peak {peak} of {limit}, exhaustive search says {truth}")
            print(json.dumps({"problem": problem}))
    print(f"{asked.count} instances, {infeasible} of them infeasible: {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
