"""Training steps of the PyTorch side of the throughput comparison, from the usual one to the fastest that we know.

Each maker takes a GPT2 and returns step(tokens, targets) -> loss, which does one AdamW step.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import torch

from gpt2_torch import GPT2, parameter_groups

BETA_1, BETA_2, EPSILON, WEIGHT_DECAY = 0.9, 0.999, 1e-8, 0.01


def usual_step(model, lr, foreach=False, keep_gradients=False):
    """The step of every tutorial, with torch.optim.AdamW; the operators use all threads."""
    groups = parameter_groups(model, WEIGHT_DECAY)
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=(BETA_1, BETA_2), eps=EPSILON, foreach=foreach)

    def step(tokens, targets):
        optimizer.zero_grad(set_to_none=not keep_gradients)
        loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def blocked_adamw(weight, gradients, moments, decay, count, lr, scratch):
    """AdamW on one parameter, by blocks that stay in cache: torch.optim walks memory once for each of its operations.

    gradients: tensors to be summed into the first; scratch: a block's worth of floats.
    """
    block = scratch.numel()
    flat = [t.reshape(-1).split(block) for t in (weight, *moments, *gradients)]
    for w, m, v, g, *others in zip(*flat):
        for other in others:
            g.add_(other)
        if decay:
            w.mul_(1 - lr * decay)
        m.mul_(BETA_1).add_(g, alpha=1 - BETA_1)
        v.mul_(BETA_2).addcmul_(g, g, value=1 - BETA_2)
        root = torch.sqrt(v, out=scratch[: v.numel()])
        root.div_(math.sqrt(1 - BETA_2**count)).add_(EPSILON)
        w.addcdiv_(m, root, value=-lr / (1 - BETA_1**count))


def threaded_step(model, lr, workers, block=65536):
    """Python threads each take a slice of the batch through operators of one thread, then a share of the update.

    Saves the operators' forks and joins, which cost much where the matrices are small. The replicas share the weights.
    """
    torch.set_num_threads(1)
    hidden = model.wte.weight.shape[1]
    sizes = (model.wte.weight.shape[0], model.wpe.weight.shape[0], len(model.h), hidden, model.h[0].attn.heads)
    replicas = [model] + [GPT2(*sizes, attend=model.attend) for _ in range(workers - 1)]
    for replica in replicas[1:]:
        for own, shared in zip(replica.parameters(), model.parameters()):
            own.data = shared.data
    columns = [list(c) for c in zip(*(replica.parameters() for replica in replicas))]
    moments = [(torch.zeros_like(c[0]), torch.zeros_like(c[0])) for c in columns]
    shares, loads = [[] for _ in range(workers)], [0] * workers
    for i in sorted(range(len(columns)), key=lambda i: -columns[i][0].numel()):
        least = loads.index(min(loads))
        shares[least].append(i)
        loads[least] += columns[i][0].numel()
    scratches = [torch.empty(block) for _ in range(workers)]
    # torch's thread count and grad mode belong to the calling thread.
    pool = ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1))
    count = 0

    def gradients(replica, tokens, targets):
        loss = replica(tokens, targets) / workers
        loss.backward()
        return loss.item()

    @torch.no_grad()
    def update(share, scratch):
        for i in share:
            decay = WEIGHT_DECAY if columns[i][0].ndim >= 2 else 0.0
            blocked_adamw(columns[i][0], [p.grad for p in columns[i]], moments[i], decay, count, lr, scratch)
            for parameter in columns[i]:
                parameter.grad = None

    def step(tokens, targets):
        nonlocal count
        count += 1
        loss = sum(pool.map(gradients, replicas, tokens.chunk(workers), targets.chunk(workers)))
        list(pool.map(update, shares, scratches))
        return loss

    return step
