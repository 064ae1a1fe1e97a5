"""Changes to the description of a plan, one thing each, for evaluate_plan.py --self-test: whatever is changed must be seen."""
import copy

COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all")


def some(items, count):
    """At most about `count` of them, from all over the list."""
    items = list(items)
    return items[:: max(1, len(items) // count)]


def set_at(root, path, value):
    for key in path[:-1]:
        root = root[key]
    root[path[-1]] = value


def get_at(root, path):
    for key in path:
        root = root[key]
    return root


def mutations(d):
    """Yields (what is changed, the description with it)."""
    for what, path, value in [*of_plan(d), *of_model(d), *of_claims(d), *of_buffers(d)]:
        changed = copy.deepcopy(d)
        set_at(changed, path, value)
        yield what, changed


def running(d):
    return [o for o, op in enumerate(d["operators"]) if op["phase"] != "source" and op["does"] == "run"]


def of_plan(d):
    """Strategies and routes."""
    ops, tensors = d["operators"], d["tensors"]
    for axis, size in enumerate(a["size"] for a in d["mesh"]["axes"]):
        if size == 1:
            continue
        for o in some(running(d), 8):
            loops = [l for l, (_, extent, may) in enumerate(ops[o]["loops"]) if may and extent > 1]
            others = [c for c in ["none", *loops] if c != ops[o]["along"][axis]]
            if loops:
                yield f"strategy of {ops[o]['name']} along mesh axis {axis}", ("operators", o, "along", axis), others[-1]
    for o, i in some(routed(d), 4):
        yield f"a step less on the way to {ops[o]['name']}", ("operators", o, "routes", i), ops[o]["routes"][i][:-1]
    # There and back again: it arrives, but is not the cheapest way.
    for o in running(d):
        if ops[o]["in"] and len(ops[o]["in"][0]) > 1 and not ops[o]["routes"][0] and d["mesh"]["axes"][0]["size"] > 1:
            maker = ops[tensors[ops[o]["in"][0][0]]["made_by"]]
            if set(ops[o]["along"] + maker["along"]) == {"none"}:
                yield "a detour", ("operators", o, "routes", 0), [["slice", 0, 0], ["all-gather", 0, -1]]
                break


def routed(d):
    return [(o, i) for o in running(d) for i, route in enumerate(d["operators"][o]["routes"]) if route]


def of_model(d):
    """Operators, tensors and the devices' constants."""
    ops, tensors, mesh = d["operators"], d["tensors"], d["mesh"]
    for t in some((t for t, info in enumerate(tensors) if info["extents"]), 4):
        yield f"an extent of {tensors[t]['name']}", ("tensors", t, "extents", 0), tensors[t]["extents"][0] + 1
        yield f"element bytes of {tensors[t]['name']}", ("tensors", t, "element_bytes"), 3
    lasting = next(t for t, info in enumerate(tensors) if info.get("persistent") and info["class"] == "parameter")
    yield "a parameter that does not last", ("tensors", lasting, "persistent"), False
    # A result without a buffer of its own took one over, unless it is a new parameter.
    owners = {b[4] for b in d["claims"]["ranks"][0]["buffers"]}
    in_place = [o for o in running(d) if "writes_back" not in ops[o] and ops[o]["out"] and ops[o]["reuse"][0] >= 0
                and ops[o]["out"][0][0] not in owners]
    for o in some(in_place, 2):
        yield f"{ops[o]['name']} not in place", ("operators", o, "reuse", 0), -1
    for o in [o for o in running(d) if ops[o]["kind"] == "contract"][:1]:
        yield "flops of a product", ("operators", o, "flops"), ops[o]["flops"] + 2
    busiest = max(running(d), key=lambda o: ops[o]["flops"])
    yield "flops of the busiest operator", ("operators", busiest, "flops"), 4 * ops[busiest]["flops"] + 1e9
    yield "microbatches", ("microbatches",), d["microbatches"] + 1
    changes = [("mesh", "device", "memory_bytes_per_second")]
    used = {step[1] for o, i in routed(d) for step in ops[o]["routes"][i] if step[0] in COLLECTIVES}
    changes += [("mesh", "axes", axis, what) for axis in sorted(used) for what in ("latency_seconds", "seconds_per_byte")]
    for path in changes:
        yield " ".join(map(str, path)), path, 0.5 * get_at(d, path)
    yield "size of a mesh axis", ("mesh", "axes", 0, "size"), mesh["axes"][0]["size"] + 1


def of_claims(d):
    """Each figure that is claimed, by as little as must be seen."""
    claims = d["claims"]
    for what in ("step_time_s", "compute_s"):
        yield f"{what} by 10^-8", ("claims", what), claims[what] * (1 + 1e-8)
    yield "sent_bytes", ("claims", "sent_bytes"), claims["sent_bytes"] + 1
    yield "a bound above the plan", ("claims", "lower_bound"), 1e30
    yield "the peak in the list", ("claims", "peak_live", 0), claims["peak_live"][0] - 1
    for what in ("parameters", "gradients", "optimizer", "activations", "peak_live", "peak_step", "arena", "laid_out"):
        yield what, ("claims", "ranks", 0, what), claims["ranks"][0][what] + 1
    yield "redundant", ("claims", "ranks", -1, "redundant"), claims["ranks"][-1]["redundant"] + 2  # it is rounded
    step = len(claims["ranks"][0]["live"]) // 2
    yield f"live bytes of step {step}", ("claims", "ranks", 0, "live", step), claims["ranks"][0]["live"][step] + 1


def of_buffers(d):
    """Size, interval and place of buffers: too many, too few, one upon another."""
    path = ("claims", "ranks", 0, "buffers")
    buffers = get_at(d, path)
    full = [b for b, x in enumerate(buffers) if x[1] > 0]
    for b in some(full, 4):
        for what, at, by in (("size", 1, 1), ("first step", 2, -1), ("end", 3, 1)):
            yield f"{what} of buffer {b}", (*path, b, at), buffers[b][at] + by
    yield "a buffer less", path, buffers[:-1]
    yield "a buffer twice", path, buffers + [buffers[full[0]]]
    a, b = next((a, b) for a in full for b in full if a != b and buffers[a][2] <= buffers[b][2] < buffers[a][3])
    yield "an offset that is taken", (*path, b, 0), buffers[a][0]
