"""Cuts of steps for unequal devices: shares by speed beside equal parts, slices and whole ops.

    .venv/bin/python -m benchmarks.cuts.unequal [--evaluations 3000]

All plans get as many evaluations of `auto`; choices of cuts do not count. Slices are of a training
step, whose batch they divide.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from benchmarks.lib.record import Row, Target, record
from situate import Cluster, Problem, solve
from situate.data.cluster import Device, Link
from situate.slicing import solve_slices
from situate.solvers.cut_choice import CutStep, choose_cuts
from situate.torch_capture import TracedStep, trace_step

MIB = 1 << 20


Build = Callable[[], Any]


def llama(layers: int, hidden: int, dtype: str) -> Build:
    """Llama layers, one sequence of 1,024 tokens."""

    def build() -> Any:
        import torch
        from transformers import AutoModelForCausalLM, LlamaConfig

        from situate.zoo.transformer import from_config, language_loss, tokens

        config = LlamaConfig(
            hidden_size=hidden,
            intermediate_size=11008 * hidden // 4096,
            num_hidden_layers=layers,
            num_attention_heads=hidden // 128,
            num_key_value_heads=hidden // 128,
        )
        model = from_config(AutoModelForCausalLM, config, getattr(torch, dtype))
        return model, tokens(config.vocab_size, 1, 1024), language_loss

    return build


def gpt2(layers: int, hidden: int, dtype: str, batch: int, length: int) -> Build:
    """GPT-2 layers."""

    def build() -> Any:
        import torch
        from transformers import AutoModelForCausalLM, GPT2Config

        from situate.zoo.transformer import from_config, language_loss, tokens

        config = GPT2Config(
            n_layer=layers, n_embd=hidden, n_head=hidden // 64, n_positions=1024, attn_pdrop=0.0
        )
        model = from_config(AutoModelForCausalLM, config, getattr(torch, dtype))
        return model, tokens(config.vocab_size, batch, length), language_loss

    return build


def rtx3080_rtx4090() -> Cluster:
    """The desktop of the preset `rtx4090-2` with one of its cards replaced.

    GeForce RTX 3080 10GB, NVIDIA Ampere GA102 architecture whitepaper: 29.8 TFLOPS float32, 59.5
    bfloat16 tensor with float32 accumulation, 760 GB/s, 10,240 MiB less 1 GiB.
    """
    two = Cluster.find("rtx4090-2")
    small = msgspec.structs.replace(
        two.devices[0],
        model="RTX 3080",
        memory=9216 * MIB,
        flops={"float32": 29.8e12, "bfloat16": 59.5e12},
        bandwidth=760e9,
    )
    return replace(two, name="3080-4090", devices=(small, *two.devices[1:]))


def rtx3090_rtx4090() -> Cluster:
    """Two computers, one with an RTX 3090 and one with an RTX 4090, on a network of 100 Gb/s, of
    which 0.9 are assumed to be reached."""
    parts = [Cluster.find(preset) for preset in ("rtx3090-2", "rtx4090-2")]
    devices = tuple(
        msgspec.structs.replace(device, name=f"node{node}-{device.kind}")
        for node, part in enumerate(parts)
        for device in part.devices[1:]
    )
    links = [Link("*", "*", 11.25e9, 15e-6)]
    for node in range(2):
        links.append(Link(f"node{node}-*", "*", 11.25e9, 15e-6, f"node{node} nic", both=False))
        links.append(Link(f"node{node}-*", f"node{node}-*", 12.6e9, 10e-6))
    return replace(parts[0], name="3090 4090", devices=devices, links=tuple(links))


def h100_a100() -> Cluster:
    """A node of two H100 and a node of two A100 on NVLink; the network of `h100-2x8` between."""
    two = Cluster.find("h100-2x8")
    devices: list[Device] = []
    for node, preset in (("node0", "h100-2x8"), ("node1", "a100-sxm-8")):
        gpu = next(d for d in Cluster.find(preset).devices if d.kind != "cpu")
        devices += [msgspec.structs.replace(gpu, name=f"{node}-gpu{k}") for k in range(2)]
    devices += [device for device in two.devices if device.kind == "cpu"]
    return replace(two, name="h100-a100", devices=tuple(devices))


CARDS: dict[str, Callable[[], Cluster]] = {
    "24-12": lambda: Cluster.find("unequal-24-12"),
    "3080-4090": rtx3080_rtx4090,
    "nodes of 3090 and 4090": rtx3090_rtx4090,
}

NO_SLICES: Row = {"slices, s": None, "slices": "none"}

SERVERS: dict[str, Callable[[], Cluster]] = {"nodes of 2 h100 and 2 a100": h100_a100}

# Cards without NVLink gain from parts of wide layers alone, whose transfers take less of the time.
NETWORKS = {
    "llama, 2 x 8192": (llama(2, 8192, "bfloat16"), CARDS),
    "gpt2, 2 x 8192, 4 x 256 tokens": (gpt2(2, 8192, "bfloat16", 4, 256), CARDS),
    "llama, 4 x 4096": (llama(4, 4096, "float32"), SERVERS),
    "gpt2, 6 x 1024, 8 x 1024 tokens": (gpt2(6, 1024, "float32", 8, 1024), SERVERS),
}


def rows(name: str, evaluations: int) -> Iterator[Row]:
    """The best plans of both passes of a network on its clusters."""
    build, clusters = NETWORKS[name]
    for phase in ("training", "inference"):
        step = trace_step(build, "adamw", "network", training=phase == "training")
        for cluster, machine in clusters.items():
            labels = {"network": name, "pass": phase, "cluster": cluster}
            is_training = phase == "training"
            slices = _slices(build, machine(), evaluations) if is_training else NO_SLICES
            row = labels | _cuts(step, machine(), evaluations) | slices
            print(row, flush=True)
            yield row


def _cuts(step: TracedStep, machine: Cluster, evaluations: int) -> Row:
    own = CutStep.of(step, lambda graph: Problem(graph, machine))
    equal, auto = choose_cuts(own, unequal=False).problem, choose_cuts(own)
    problems = {"whole": own.problem_of(None), "equal": equal, "auto": auto.problem}
    plans = {name: solve(p, evaluations=evaluations) for name, p in problems.items()}
    return {
        "equal cuts": str(equal.graph.cuts or "none"),
        "cuts": str(auto.problem.graph.cuts or "none"),
        **{f"{name}, s": plan.value for name, plan in plans.items()},
        "fit": all(plan.feasible for plan in plans.values()),
        "bound in these cuts, s": plans["auto"].lower_bound,
        "bound over all cuts, s": auto.least,
    }


def _slices(build: Build, machine: Cluster, evaluations: int) -> Row:
    plan = solve_slices(build, machine, optimizer="adamw", evaluations=evaluations).result
    return {"slices, s": plan.value, "slices": str(plan.problem.graph.slices or "none")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=3000)
    options = parser.parse_args()
    measured = [row for name in NETWORKS for row in rows(name, options.evaluations)]
    targets = []
    for row in measured:
        least = min(row["whole, s"], row["equal, s"], row.get("slices, s") or math.inf)
        value = row["auto, s"]
        name = f"{row['network']}, {row['pass']}, {row['cluster']}"
        targets.append(Target(name, f"below {least:.4f} s", f"{value:.4f} s", value < least))
    record("cuts_unequal", {"steps": measured}, targets, options=options)


if __name__ == "__main__":
    main()
