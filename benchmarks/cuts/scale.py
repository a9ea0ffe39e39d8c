"""The choice of cuts for large models: Llama 7B and 70B, and a mixture of 64 experts, on H100s.

    .venv/bin/python -m benchmarks.cuts.scale [--time-limit 10] [llama_7b:h100-8 ...]

The capture does not count. Seconds are of the processor, because others may use the machine too;
`wall, s` is the time that passed. `h100-8x8` is `h100-2x8` with eight nodes.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from typing import Any

import msgspec

from benchmarks.lib.record import Row, Target, record
from situate import Cluster, Problem, solve
from situate.data.cluster import Link
from situate.model import trace_model
from situate.solvers.cut_choice import CutStep, choose_cuts
from situate.torch_capture import TracedStep, trace_step

CASES = ("llama_7b:h100-8", "llama_70b:h100-2x8", "experts_64:h100-8", "llama_7b:h100-8x8")

MOST_SECONDS, MOST_GIGABYTES = 60, 4

LAYERS, TOKENS, HIDDEN, INNER, EXPERTS, CAPACITY = 16, 4096, 2048, 1408, 64, 256


def experts_64() -> Any:
    """Llama layers whose feed-forward layers are 64 experts; each takes the tokens that want it
    most."""
    import torch
    from torch import nn
    from transformers import AutoModelForCausalLM, LlamaConfig

    from situate.zoo.transformer import from_config, language_loss, tokens

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
            self.up = nn.Parameter(torch.empty(EXPERTS, HIDDEN, INNER))
            self.down = nn.Parameter(torch.empty(EXPERTS, INNER, HIDDEN))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = x.flatten(0, 1)
            weights, own = self.router(rows).softmax(-1).t().topk(CAPACITY)
            inputs = rows.index_select(0, own.flatten()).view(EXPERTS, CAPACITY, HIDDEN)
            outputs = nn.functional.silu(inputs.bmm(self.up)).bmm(self.down) * weights.unsqueeze(2)
            flat = outputs.flatten(0, 1)
            return torch.zeros_like(rows).index_add(0, own.flatten(), flat).view(x.shape)

    config = LlamaConfig(
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        num_key_value_heads=16,
        intermediate_size=INNER,
    )
    model: Any = from_config(AutoModelForCausalLM, config, torch.bfloat16)
    for layer in model.model.layers:
        layer.mlp = Experts().to(torch.bfloat16)
    return model, tokens(config.vocab_size, 1, TOKENS), language_loss


def cluster(name: str) -> Cluster:
    """A preset, or `h100-8x8`."""
    if name != "h100-8x8":
        return Cluster.find(name)
    two = Cluster.find("h100-2x8")
    devices = []
    for node in range(8):
        for device in two.devices:
            if device.name.startswith("node0"):
                own = device.name.replace("node0", f"node{node}")
                devices.append(msgspec.structs.replace(device, name=own))
    # Patterns of node 0 hold in each node; those between nodes 0 and 1 between any two.
    links = [Link("*", "*", bandwidth=45e9, latency=15e-6)]
    for node in range(8):
        other = Link(f"node{node}-*", "*", 45e9, 15e-6, f"node{node} nic", both=False)
        links.append(other)
    for node in range(8):
        links += [
            msgspec.structs.replace(
                link,
                source=link.source.replace("node0", f"node{node}"),
                target=link.target.replace("node0", f"node{node}"),
            )
            for link in two.links
            if link.source.startswith("node0") and link.target.startswith("node0")
        ]
    return replace(two, name=name, devices=tuple(devices), links=tuple(links))


def _step(model: str) -> TracedStep:
    if model == "experts_64":
        return trace_step(experts_64, "adamw", model, packages=("transformers",))
    return trace_model(model, change="cuts")


def row(case: str, seconds: float) -> Row:
    """The choice for a model and a cluster, and a plan by `auto`."""
    model, _, devices = case.partition(":")
    step, machine = _step(model), cluster(devices)
    begin, wall = time.process_time(), time.perf_counter()
    choice = choose_cuts(CutStep.of(step, lambda graph: Problem(graph, machine)))
    chosen = time.process_time() - begin
    result = solve(choice.problem, time_limit=seconds)
    measured = {
        "model": model,
        "cluster": devices,
        "cuts": str(choice.problem.graph.cuts),
        "ops": choice.problem.n,
        "choice, s": round(chosen, 1),
        "planning, s": round(time.process_time() - begin, 1),
        "wall, s": round(time.perf_counter() - wall, 1),
        "memory, GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "step, s": result.value,
        "fits": result.feasible,
        "gap in these cuts, %": 100 * result.gap if result.gap is not None else None,
        "gap over all cuts, %": 100 * (result.value / choice.least - 1) if choice.least else None,
    }
    print(measured, flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args()
    rows = [row(case, options.time_limit) for case in options.cases]
    targets = []
    for one in rows:
        name = f"{one['model']} on {one['cluster']}"
        spent, used = one["planning, s"], one["memory, GB"]
        within = spent <= MOST_SECONDS and used <= MOST_GIGABYTES
        goal = f"{MOST_SECONDS} s and {MOST_GIGABYTES} GB"
        targets.append(Target(name, goal, f"{spent} s and {used} GB", within))
    record("cuts_scale", {"choices": rows}, targets, options=options)


if __name__ == "__main__":
    main()
