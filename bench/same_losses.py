#!/usr/bin/env python3
"""Every plan gives one loss: trains a small GPT with dropout under each plan, on each mesh, over threads and MPI, in both
precisions, and compares each loss with that of one rank alone.

    bench/same_losses.py build/demo/bin/train_gpt [--meshes 1,4,2x2] [--plans zero3,memory] [-- OPTIONS OF train_gpt]

The table shows the worst relative difference of any step. Status 1 where one breaks its bound: 1e-4 in float, 1e-10 in
double."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

MESHES = ["1", "2", "3", "4", "8", "2x2", "2x2x2"]
PLANS = ["single", "ddp", "zero1", "zero2", "zero3", "megatron", "megatron-sp", "time", "memory"]
BOUNDS = {"float": 1e-4, "double": 1e-10}
MODEL = ["--layers", "4", "--hidden", "32", "--heads", "4", "--seq", "32", "--batch", "8", "--vocab", "256", "--dropout", "0.1"]
AXES = ["data", "model", "extra"]


def ranks_of(mesh):
    ranks = 1
    for size in mesh.split("x"):
        ranks *= int(size)
    return ranks


def options_of(mesh):
    """"2x2" is the mesh data=2,model=2; "4" is four ranks on one axis."""
    sizes = mesh.split("x")
    return ["--ranks", mesh] if len(sizes) == 1 else ["--mesh", ",".join(map("=".join, zip(AXES, sizes)))]


def mpirun(ranks):
    """More ranks than cores are common, so ranks that wait give way."""
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return command + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def losses(a, mesh, comm, precision, plan):
    """The losses of a run, or the sentence that says why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.json")
        command = mpirun(ranks_of(mesh)) if comm == "mpi" else []
        command += [a.program] + MODEL + a.options + options_of(mesh)
        command += ["--comm", comm, "--precision", precision, "--plan", plan, "--steps", str(a.steps), "--json", out]
        command += ["--no-table", "--sample", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            try:
                said, _ = run.communicate(timeout=a.seconds)
            except subprocess.TimeoutExpired:
                run.terminate()  # mpirun ends its ranks with itself
                return f"no end after {a.seconds:.0f} s"
        if run.returncode != 0:
            said = [line for line in said.splitlines() if line.startswith(("mmr: ", "train_gpt: "))]
            return said[-1] if said else f"status {run.returncode}"
        with open(out) as file:
            return json.load(file)["loss"]


def worst(ours, single):
    """The greatest relative difference, or infinity where a loss is missing or is no number."""
    if len(ours) != len(single):
        return float("inf")
    differences = [abs(x - y) / abs(y) for x, y in zip(ours, single)]
    return max(differences) if all(d == d for d in differences) else float("inf")


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--meshes", default=",".join(MESHES), help="ranks, or sizes of up to three mesh axes as 2x2x2")
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--comms", default="threads,mpi")
    parser.add_argument("--precisions", default="float,double")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=300, help="time limit of one run")
    a = parser.parse_args(arguments)
    a.options = options

    plans, precisions = a.plans.split(","), a.precisions.split(",")
    single = {p: losses(a, "1", "threads", p, "single") for p in precisions}
    for precision, values in single.items():
        if isinstance(values, str):
            sys.exit(f"one rank alone, in {precision}: {values}")
        print(f"one rank alone, in {precision}: loss {values[0]:.6f} -> {values[-1]:.6f} in {len(values)} steps")
    width = max(map(len, plans + ["0.0e+00 !"])) + 2
    print(f"\n{'mesh':<8}{'comm':<9}{'precision':<10}" + "".join(f"{p:>{width}}" for p in plans), flush=True)
    broken = []
    for mesh in a.meshes.split(","):
        for comm in a.comms.split(","):
            for precision in precisions:
                print(f"{mesh:<8}{comm:<9}{precision:<10}", end="", flush=True)
                for plan in plans:
                    got = losses(a, mesh, comm, precision, plan)
                    cell, holds = "failed", False
                    if not isinstance(got, str):
                        difference = worst(got, single[precision])
                        cell, holds, got = f"{difference:.1e}", difference <= BOUNDS[precision], f"differs by {difference:.1e}"
                    if not holds:
                        broken.append(f"{plan} on {mesh} over {comm} in {precision}: {got}")
                    print(f"{cell + ('' if holds else ' !'):>{width}}", end="", flush=True)
                print(flush=True)
    for sentence in broken:
        print(sentence, file=sys.stderr)
    sys.exit(1 if broken else 0)


main()
