#!/usr/bin/env python3
"""Checks what mmr claims of a plan, from the plan's description alone (mmr::save_description writes it).

    bench/evaluate_plan.py [--self-test] FILE ...

Written from the definitions in docs/figures.md, and shares no code with the library. It computes every figure anew: the
placements that follow from strategies, the cheapest sequence of collectives for each edge (a Dijkstra of its own), live
intervals, what works in place, the bytes of each step, class and rank, redundancy, seconds by roofline and by the formulas of
the collectives, and whether the buffers lie apart in the arena. Bytes must agree exactly, seconds to one part in 10^9.
Taken as they are stated: the flops of an operator's share (but those of matrix products are counted), the workspace of a CPU
kernel, and the schedule. --self-test changes one thing after another in each description and fails where that goes unseen.
The exit status is 1 where anything differs."""
import argparse
import bisect
import collections
import fractions
import heapq
import itertools
import json
import math
import sys

SECONDS = 1e-9
R, P = "R", "P"  # along one mesh axis: replicated, partial; a number is the dimension that is split


class Mesh:
    def __init__(self, described):
        self.axes = described["axes"]
        self.sizes = [a["size"] for a in self.axes]
        self.device = described["device"]
        self.ranks = 1
        for n in self.sizes:
            self.ranks *= n

    def coordinates(self, rank):
        at = []
        for n in reversed(self.sizes):
            at.append(rank % n)
            rank //= n
        return at[::-1]

    def part(self, extent, splits, at):
        """Elements of a dimension on the rank at these coordinates; `splits` says of each mesh axis whether it splits it.
        The first axis is the outermost; of uneven parts the first are one longer."""
        for n, here, split in zip(self.sizes, at, splits):
            if split:
                extent = extent // n + (1 if here < extent % n else 0)
        return extent

    def count(self, extents, place, at):
        n = 1
        for d, extent in enumerate(extents):
            n *= self.part(extent, [p == d for p in place], at)
        return n


class Routes:
    """Collectives for tensors of one shape."""

    def __init__(self, mesh, extents, element):
        self.mesh, self.extents, self.element = mesh, extents, element
        self.first = [0] * len(mesh.sizes)
        self.known = {}

    def bytes(self, place):
        return self.element * self.mesh.count(self.extents, place, self.first)

    def step(self, before, kind, axis, dim):
        """(placement after, seconds, bytes sent) of one collective; None where it cannot be."""
        at = before[axis]
        after = list(before)
        if kind in ("all-gather", "all-reduce"):
            after[axis] = R
        elif kind == "mask":
            after[axis] = P
        else:
            after[axis] = dim
            if not (isinstance(dim, int) and 0 <= dim < len(self.extents)):
                return None
        needs = {"all-gather": at not in (R, P), "all-reduce": at == P, "reduce-scatter": at == P,
                 "all-to-all": at not in (R, P) and at != dim, "slice": at == R, "mask": at == R}
        # A split can be made or undone by one collective only if it is the innermost of its dimension.
        inner = [p for p in before[axis + 1:]]
        if not needs.get(kind, False) or (at not in (R, P) and at in inner) or (after[axis] not in (R, P) and after[axis] in inner):
            return None
        whole = list(before)
        whole[axis] = R
        whole = self.bytes(whole)
        link, device, n = self.mesh.axes[axis], self.mesh.device, self.mesh.sizes[axis]
        latency, beta = link["latency_seconds"], link["seconds_per_byte"]
        share = whole // n * (n - 1)
        seconds, sent = {
            "all-gather": lambda: (latency + beta * whole * (n - 1) / n, share),
            "reduce-scatter": lambda: (latency + beta * whole * (n - 1) / n, share),
            "all-reduce": lambda: (latency + 2 * beta * whole * (n - 1) / n, 2 * share),
            "all-to-all": lambda: (latency + beta * whole * (n - 1) / n ** 2, share // n),
            "slice": lambda: (device["launch_seconds"] + 2 * whole / n / device["memory_bytes_per_second"], 0),
            "mask": lambda: (device["launch_seconds"] + 2 * whole / device["memory_bytes_per_second"], 0),
        }[kind]()
        return tuple(after), seconds, sent

    def cheapest(self, start):
        """(seconds, bytes of all buffers filled) of the best route to every placement."""
        if start in self.known:
            return self.known[start]
        done, heap, order = {}, [(0.0, 0, 0, start)], 0
        dims = range(len(self.extents))
        while heap:
            seconds, filled, _, place = heapq.heappop(heap)
            if place in done:
                continue
            done[place] = (seconds, filled)
            for axis, at in enumerate(place):
                kinds = [("all-reduce", -1)] + [("reduce-scatter", d) for d in dims] if at == P else \
                    [("mask", -1)] + [("slice", d) for d in dims] if at == R else \
                    [("all-gather", -1)] + [("all-to-all", d) for d in dims]
                for kind, dim in kinds:
                    made = self.step(place, kind, axis, dim)
                    if made and made[0] not in done:
                        order += 1
                        heapq.heappush(heap, (seconds + made[1], filled + self.bytes(made[0]), order, made[0]))
        self.known[start] = done
        return done


class Evaluation:
    def __init__(self, described):
        self.d = described
        self.wrong = []
        self.mesh = Mesh(described["mesh"])
        self.tensors, self.ops = described["tensors"], described["operators"]
        self.routers = {}

    # ---- what is compared ----
    def differ(self, what, stated, computed):
        self.wrong.append(f"{what}: stated {stated}, computed {computed}")

    def same(self, what, stated, computed):
        if stated != computed:
            self.differ(what, stated, computed)

    def close(self, what, stated, computed):
        if not abs(stated - computed) <= SECONDS * max(abs(stated), abs(computed)):
            self.differ(what, stated, computed)

    def run(self):
        self.check_structure()
        if self.wrong:
            return self.wrong  # nothing else can be computed
        self.find_lives()
        self.walk_routes()
        self.check_seconds()
        claims = self.d["claims"]
        described = {r["rank"]: r for r in claims["ranks"]}
        self.same("the number of ranks", len(claims["peak_live"]), self.mesh.ranks)
        for rank in sorted(described):
            self.check_rank(described[rank])
        if claims["peak_live"].index(max(claims["peak_live"])) not in described:
            self.wrong.append("the fullest rank is not described")
        if not self.mesh.device["cpu"] and self.mesh.ranks <= 16:  # no kernel has a workspace there
            for rank, peak in enumerate(claims["peak_live"]):
                if rank not in described:
                    self.same(f"peak_live of rank {rank}", peak, max(self.live(self.buffers_of(rank, {}))))
        reached = max(claims["peak_live"]) if claims["lower_bound_unit"] == "bytes" else claims["step_time_s"]
        if claims["lower_bound"] > reached * (1 + SECONDS):
            self.differ("lower_bound is above what the plan reaches", claims["lower_bound"], reached)
        return self.wrong

    # ---- structure ----
    def check_structure(self):
        made = set()
        for o, op in enumerate(self.ops):
            loops = op["loops"]
            for t, *walked in op["in"]:
                if t not in made:
                    self.wrong.append(f"{op['name']} reads tensor {t} before it is made")
            for r, (t, *walked) in enumerate(op["out"]):
                made.add(t)
                self.same(f"maker of {self.tensors[t]['name']}", (self.tensors[t]["made_by"], self.tensors[t].get("result")), (o, r))
            for r, (t, *walked) in enumerate(op["state"]):
                self.same(f"owner of {self.tensors[t]['name']}", (self.tensors[t]["made_by"], self.tensors[t].get("state")), (o, r))
            for t, *walked in op["in"] + op["out"] + op["state"]:
                self.same(f"extents of {self.tensors[t]['name']} in {op['name']}", self.tensors[t]["extents"],
                          [loops[l][1] for l in walked])
                if op.get("kind") != "rename":  # which gives an axis another name
                    self.same(f"axes of {self.tensors[t]['name']} in {op['name']}", self.tensors[t]["axes"], [loops[l][0] for l in walked])
            for n, choice in zip(self.mesh.sizes, op["along"]):
                if choice == "none" or op["does"] == "absent":
                    continue
                if n == 1:
                    self.wrong.append(f"{op['name']} is split along a mesh axis of one rank")
                elif choice == "partial":
                    if not (op["linear"] and op["in"]):
                        self.wrong.append(f"{op['name']} is not linear and is given partial operands")
                elif not (loops[choice][2] and loops[choice][1] > 1):
                    self.wrong.append(f"{op['name']} splits its loop over {loops[choice][0]}, which may not be split")
            if op["does"] != "run" and "again" not in op:
                self.wrong.append(f"{op['name']} does not run, and repeats nothing")
        bytes_of = {"float64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "uint8": 1}
        for t in self.tensors:
            self.same(f"element_bytes of {t['name']}", t["element_bytes"], bytes_of.get(t["element"]))
        if self.wrong:
            return
        for op in self.ops:  # what is read must be there, and where it is said to be
            if op["does"] == "run":
                for t, *_ in op["in"]:
                    if not self.is_there(t):
                        self.wrong.append(f"{op['name']} reads {self.tensors[t]['name']}, which is neither kept nor made")
            if op["does"] == "keep":
                first = self.ops[op["again"]]
                for r, (t, *_) in enumerate(op["out"]):
                    if op["keepable"][r] and first["does"] == "absent":
                        self.wrong.append(f"{op['name']} keeps what is not there")
                    if op["keepable"][r]:
                        self.same(f"placement kept by {op['name']}", self.made(t), self.made(first["out"][r][0]))

    def is_there(self, t):
        maker = self.ops[self.tensors[t]["made_by"]]
        return maker["does"] == "run" or (maker["does"] == "keep" and maker["keepable"][self.tensors[t]["result"]])

    # ---- placements ----
    def place(self, op, access, lacking):
        t, *walked = access
        floating = self.tensors[t]["element"] in ("float64", "float32", "bfloat16")
        place = []
        for choice in op["along"]:
            if choice == "none":
                place.append(R)
            elif choice == "partial":
                place.append(P if floating else R)
            else:
                place.append(walked.index(choice) if choice in walked else lacking)
        return tuple(place)

    def made(self, t):
        """Where a tensor lies once its operator has made it: partial along what was summed over."""
        info = self.tensors[t]
        maker = self.ops[info["made_by"]]
        if "state" in info:
            return self.place(maker, maker["state"][info["state"]], R)
        return self.place(maker, maker["out"][info["result"]], P)

    def bytes(self, t, place, rank):
        info = self.tensors[t]
        return info["element_bytes"] * self.mesh.count(info["extents"], place, self.mesh.coordinates(rank))

    # ---- live intervals ----
    def find_lives(self):
        self.steps = [o for o, op in enumerate(self.ops) if op["phase"] != "source"]
        self.at = {o: s for s, o in enumerate(self.steps)}
        last = {}
        for s, o in enumerate(self.steps):
            for t, *_ in self.ops[o]["in"]:
                last[t] = s
        # Tensors that a later run may keep instead of making them again must not be overwritten before.
        keeper = {}
        for o in reversed(self.steps):
            op = self.ops[o]
            for r, may in enumerate(op.get("keepable", [])):
                t = op["out"][r][0]
                if may and (t in last or t in keeper):
                    keeper[self.ops[op["again"]]["out"][r][0]] = t
        self.keeper = keeper
        microbatch = [s for s, o in enumerate(self.steps) if self.ops[o]["phase"] == "microbatch"]
        self.life, self.reused, count = {}, {}, len(self.steps)
        for t, info in enumerate(self.tensors):
            maker = self.ops[info["made_by"]]
            if info.get("persistent") or "state" in info:
                self.life[t] = (0, count)
                continue
            made = self.at.get(info["made_by"], -1)
            end = max(last.get(t, -1), made) + 1
            if maker.get("accumulates"):  # the next microbatch adds to what this one leaves
                self.life[t] = (0, max(end, microbatch[-1] + 1))
                continue
            reuse = maker["reuse"][info["result"]]
            takes = reuse >= 0 and ("writes_back" in maker or self.dies(info["made_by"], reuse, last))
            if takes:
                self.reused[t] = reuse
            self.life[t] = (made + 1 if takes else made, end)
        self.last = last
        self.kept = {}
        for o in self.steps:
            op = self.ops[o]
            for r, _ in enumerate(op.get("keepable", [])):
                first, t = self.ops[op["again"]], op["out"][r][0]
                before = first["out"][r][0]
                begin = self.kept[before][1] if "again" in first else self.life[before][1]
                self.kept[t] = (begin, max(begin, last.get(t, -1) + 1))

    def dies(self, o, operand, last=None):
        """Whether an operator reads an operand as the last, once, and nothing needs the buffer any more."""
        last = self.last if last is None else last
        op = self.ops[o]
        t = op["in"][operand][0]
        info = self.tensors[t]
        if info.get("persistent") or "state" in info or t in self.keeper:
            return False
        if self.ops[info["made_by"]].get("accumulates") and op["phase"] == "microbatch":
            return False
        while "again" in self.ops[info["made_by"]]:  # it may be the first run's, kept, and that may still be read
            again = self.ops[info["made_by"]]["again"]
            before = self.ops[again]["out"][info["result"]][0]
            if last.get(before, -1) >= self.at[o]:
                return False
            info = self.tensors[before]
        return last[t] == self.at[o] and [a[0] for a in op["in"]].count(t) == 1

    # ---- resharding ----
    def walk_routes(self):
        """Checks each route that is stated, and keeps its steps: [(kind, placement after, seconds, bytes sent), ...]."""
        self.moves, self.back = {}, {}
        for o in self.steps:
            op = self.ops[o]
            if op["does"] != "run":
                continue
            self.same(f"routes of {op['name']}", len(op["routes"]), len(op["in"]))
            self.moves[o] = [self.walk(op, access[0], self.made(access[0]), self.place(op, access, R), route)
                             for access, route in zip(op["in"], op["routes"])]
            if "writes_back" in op:
                self.back[o] = self.walk(op, op["writes_back"], self.made(op["out"][0][0]), self.made(op["writes_back"]), op["route_back"])

    def walk(self, op, t, start, goal, route):
        info = self.tensors[t]
        key = (tuple(info["extents"]), info["element_bytes"])
        router = self.routers.setdefault(key, Routes(self.mesh, info["extents"], info["element_bytes"]))
        where = f"the route of {info['name']} to {op['name']}"
        steps, place, seconds, filled = [], start, 0.0, 0
        for kind, axis, dim in route:
            made = router.step(place, kind, axis, dim) if 0 <= axis < len(place) else None
            if made is None:
                self.wrong.append(f"{where} has a step that cannot be: {kind} along mesh axis {axis} of {place}")
                return steps
            place = made[0]
            seconds += made[1]
            filled += router.bytes(place)
            steps.append((kind, *made))
        if place != goal:
            self.differ(f"{where} ends", place, goal)
        if start != goal:
            best = router.cheapest(start)[goal]
            if seconds > best[0] * (1 + SECONDS) or (seconds >= best[0] and filled > best[1]):
                self.differ(f"{where} is not the cheapest (seconds, bytes)", (seconds, filled), best)
        elif route:
            self.wrong.append(f"{where} moves what lies there already")
        return steps

    # ---- seconds ----
    def check_seconds(self):
        device, claims = self.mesh.device, self.d["claims"]
        compute = moving = 0.0
        sent = 0
        for o in self.steps:
            op = self.ops[o]
            if op["does"] != "run":
                continue
            times = self.d["microbatches"] if op["phase"] == "microbatch" else 1
            touched = sum(self.bytes(a[0], self.place(op, a, R), 0) for a in op["in"])
            touched += sum(self.bytes(a[0], self.made(a[0]), 0) for a in op["out"] + op["state"])
            self.check_flops(op)
            rate = device["matrix_flops" if op["matrix"] else "other_flops"]
            rate = rate[op["element"] if op["element"] in rate else "float32"]
            compute += times * (device["launch_seconds"] + max(op["flops"] / rate, touched / device["memory_bytes_per_second"]))
            for route in self.moves[o] + [self.back.get(o, [])]:
                moving += times * sum(s[2] for s in route)
                sent += times * sum(s[3] for s in route)
        self.close("compute_s", claims["compute_s"], compute)
        self.close("step_time_s", claims["step_time_s"], compute + moving)
        self.same("sent_bytes", claims["sent_bytes"], sent)

    def check_flops(self, op):
        """A product of two operands costs a multiplication and an addition for each point of the loops of rank 0 that either
        walks. One operator may compute several: the flops must be a sum of such terms."""
        if op["kind"] != "contract":
            return
        first = [0] * len(self.mesh.sizes)
        sizes = [self.mesh.part(extent, [c == l for c in op["along"]], first) for l, (_, extent, _) in enumerate(op["loops"])]
        terms = set()
        for (_, *a), (_, *b) in itertools.combinations(op["in"], 2):
            if any(set(out[1:]) <= set(a + b) for out in op["out"]):
                terms.add(2 * math.prod(sizes[l] for l in set(a + b)))
        if not any(sum(some) == op["flops"] for count in range(1, len(op["in"]) + 1)
                   for some in itertools.combinations_with_replacement(terms, count)):
            self.differ(f"flops of {op['name']}, a sum of", op["flops"], sorted(terms))

    # ---- bytes ----
    def buffers_of(self, rank, workspace):
        """[bytes, begin, end, tensor, operator, transient] of everything that a rank holds."""
        buffers, of = [], {}

        def own(t):
            buffers.append([self.bytes(t, self.made(t), rank), *self.life[t], t, self.tensors[t]["made_by"], False])
            of[t] = len(buffers) - 1

        def move(o, t, route, source, in_place, last):
            for i, (kind, place, *_) in enumerate(route):
                if i + 1 == len(route) and last is not None:
                    source = last
                elif not (i == 0 and in_place and kind in ("all-reduce", "mask")):
                    buffers.append([self.bytes(t, place, rank), self.at[o], self.at[o] + 1, t, o, True])
                    source = len(buffers) - 1
            return source

        for t, info in enumerate(self.tensors):
            if info.get("persistent") or "state" in info or self.ops[info["made_by"]].get("accumulates"):
                own(t)
        for step, o in enumerate(self.steps):
            op = self.ops[o]
            if op["does"] == "keep":
                for r, (t, *_) in enumerate(op["out"]):
                    if op["keepable"][r]:
                        of[t] = of[self.ops[op["again"]]["out"][r][0]]
                        if self.kept[t][0] < self.kept[t][1]:
                            buffers[of[t]][2] = max(buffers[of[t]][2], self.kept[t][1])
            if op["does"] != "run":
                continue
            operands = [move(o, a[0], route, of[a[0]], self.dies(o, i), None)
                        for i, (a, route) in enumerate(zip(op["in"], self.moves[o]))]
            if o in workspace:
                buffers.append([workspace[o], step, step + 1, -1, o, True])
            for t, *_ in op["out"]:
                if t in self.reused:
                    of[t] = operands[self.reused[t]]
                    if "writes_back" not in op:  # lives on where its operand, or the copy of it, was
                        taken = buffers[of[t]]
                        taken[2], taken[5] = max(taken[2], self.life[t][1]), False
                elif t not in of:
                    own(t)
            if "writes_back" in op:
                move(o, op["writes_back"], self.back[o], of[op["out"][0][0]], False, of[op["writes_back"]])
        return buffers

    def live(self, intervals):
        change = [0] * (len(self.steps) + 1)
        for size, begin, end, *_ in intervals:
            if begin < end:
                change[begin] += size
                change[end] -= size
        total, now = [], 0
        for c in change[:-1]:
            now += c
            total.append(now)
        return total

    def check_rank(self, stated):
        rank = stated["rank"]
        of = f" of rank {rank}"
        workspace = dict(map(tuple, stated["workspace"]))
        if workspace and not self.mesh.device["cpu"]:
            self.wrong.append("a workspace" + of + " on a device whose kernels are not known")
        buffers = self.buffers_of(rank, workspace)
        live = self.live(buffers)
        self.same("live bytes" + of + " (first step that differs)", *first_difference(stated["live"], live))
        peak = max(live, default=0)
        self.same("peak_live" + of, stated["peak_live"], peak)
        self.same("peak_step" + of, stated["peak_step"], live.index(peak) if peak > 0 else 0)
        self.same("peak_live" + of + " in the list", self.d["claims"]["peak_live"][rank], peak)
        counts = collections.Counter(tuple(b[1:]) for b in stated["buffers"])
        mine = collections.Counter(map(tuple, buffers))
        for odd in list((counts - mine).items())[:3]:
            self.differ("a buffer" + of, odd, "none like it")
        for odd in list((mine - counts).items())[:3]:
            self.differ("a buffer" + of, "none like it", odd)
        self.check_classes(stated, rank, of)
        self.check_arena(stated, of)

    def check_classes(self, stated, rank, of):
        held, redundant = collections.defaultdict(list), fractions.Fraction(0)
        readers = collections.defaultdict(list)
        for o in self.steps:
            for t, *_ in self.ops[o]["in"]:
                readers[t].append(o)
        for t, info in enumerate(self.tensors):
            maker = self.ops[info["made_by"]]
            if ("writes_back" in maker and maker["out"][0][0] == t) or ("state" not in info and not self.is_there(t)):
                continue
            life = self.life[t] if maker["does"] == "run" else self.kept[t]
            size = self.bytes(t, self.made(t), rank)
            held[info["class"]].append((size, *life))
            if self.is_stored(t, readers[t]):
                whole = info["element_bytes"]
                for n in info["extents"]:
                    whole *= n
                redundant += max(fractions.Fraction(0), size - fractions.Fraction(whole, self.mesh.ranks))
        for name, plural in (("parameter", "parameters"), ("gradient", "gradients"), ("optimizer", "optimizer"), ("activation", "activations")):
            self.same(plural + of, stated[plural], max(self.live(held[name]), default=0))
        if abs(stated["redundant"] - redundant) > 1:  # a sum of doubles, rounded
            self.differ("redundant" + of, stated["redundant"], float(redundant))

    def is_stored(self, t, readers):
        """Whether a tensor outlives the step that makes it for a later pass: what replication makes redundant."""
        info = self.tensors[t]
        maker = self.ops[info["made_by"]]
        if info["class"] == "input":
            return False
        if info.get("persistent") or "state" in info or maker.get("accumulates"):
            return True
        if info["class"] == "gradient":
            return maker.get("kind") == "gradient"
        if not info.get("forward"):
            return False
        if t in self.keeper and self.ops[self.tensors[self.keeper[t]]["made_by"]]["does"] == "keep":
            return True
        return any(self.ops[o]["out"] and not self.tensors[self.ops[o]["out"][0][0]].get("forward") for o in readers)

    def check_arena(self, stated, of):
        """No two buffers that are live together may overlap, and the arena must hold them all."""
        self.same("arena" + of, stated["arena"], stated["laid_out"])
        highest, begins, ends = 0, collections.defaultdict(list), collections.defaultdict(list)
        for offset, size, begin, end, *_ in stated["buffers"]:
            if size == 0 or begin >= end:
                continue
            if offset < 0 or offset % 16 != 0:
                self.wrong.append(f"a buffer of {size} bytes{of} lies at {offset}")
            highest = max(highest, offset + size)
            begins[begin].append((offset, size))
            ends[end].append((offset, size))
        if not highest <= stated["arena"] < highest + 64:  # sizes are rounded up to at most 64 bytes
            self.differ("arena" + of + " and the end of its last buffer", stated["arena"], highest)
        if stated["arena"] < stated["peak_live"]:
            self.differ("arena" + of + " and its peak", stated["arena"], stated["peak_live"])
        lying = []
        for step in range(len(self.steps)):
            for b in ends[step]:
                lying.remove(b)
            for b in begins[step]:
                i = bisect.bisect(lying, b)
                if (i > 0 and sum(lying[i - 1]) > b[0]) or (i < len(lying) and b[0] + b[1] > lying[i][0]):
                    self.wrong.append(f"two buffers{of} overlap at offset {b[0]} in step {step}")
                    return
                lying.insert(i, b)


def first_difference(stated, computed):
    if len(stated) != len(computed):
        return len(stated), len(computed)
    for step, (a, b) in enumerate(zip(stated, computed)):
        if a != b:
            return (step, a), (step, b)
    return None, None


def evaluate(described):
    if described.get("mmr_description") != 1:
        return [f"format version {described.get('mmr_description')}, and this program reads 1"]
    try:
        return Evaluation(described).run()
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        return [f"the description is damaged: {type(problem).__name__} {problem}"]


def self_test(name, described):
    from plan_mutations import mutations  # beside this file

    count = unseen = 0
    for what, changed in mutations(described):
        count += 1
        if not evaluate(changed):
            unseen += 1
            print(f"{name}: unseen: {what}")
    print(f"{name}: {count - unseen} of {count} changes seen")
    return unseen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="+", metavar="FILE")
    a = parser.parse_args()
    differ = 0
    for name in a.files:
        try:
            with open(name) as file:
                described = json.load(file)
            if not isinstance(described, dict):
                raise ValueError("it is no description of a plan")
            wrong = evaluate(described)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as problem:
            what = f"it lacks {problem}" if isinstance(problem, KeyError) else problem
            sys.exit(f"{name} cannot be evaluated: {what}; write it again with mmr::save_description")
        differ += bool(wrong)
        for line in wrong[:10]:
            print(f"{name}: {line}")
        if len(wrong) > 10:
            print(f"{name}: and {len(wrong) - 10} more")
        if a.self_test and not wrong:
            differ += self_test(name, described) > 0
    print(f"{len(a.files)} plans evaluated, {differ} differ")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
