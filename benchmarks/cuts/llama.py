"""Eight Llama layers on four V100s: whole ops, ops in two and four parts, and cuts by choice.

    .venv/bin/python -m benchmarks.cuts.llama [--time-limit 10]

Both passes have a batch of 1 x 1,024 tokens, hidden size 4,096 and float32. The search gets the
same seconds in each row, which captures and the choice of cuts do not count in.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.lib.record import Row, Target, record
from situate import Cluster, Problem, solve
from situate.data.cuts import Cuts, parse_cuts
from situate.solvers.cut_choice import CutStep, choose_cuts
from situate.torch_capture import TracedStep, trace_step

LAYERS, TOKENS = 8, 1024

GOALS = {"training": 0.326, "inference": 0.120}
"""Seconds of steps whose parts were written by hand, four a layer."""


def build() -> Any:
    """Model, inputs and loss."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    from situate.zoo.transformer import from_config, language_loss, tokens

    config = LlamaConfig(num_hidden_layers=LAYERS)
    model = from_config(AutoModelForCausalLM, config, torch.float32)
    return model, tokens(config.vocab_size, 1, TOKENS), language_loss


def cut(parts: int) -> Cuts:
    """Megatron-LM's cuts, with sequence parallel norms."""
    kinds = ("heads", "features", "vocabulary", "sequence")
    return parse_cuts([f"{kind}={parts}" for kind in kinds])


def rows(phase: str, seconds: float, seed: int) -> Iterator[Row]:
    """The best plans of a pass."""
    step = trace_step(build, "adamw", phase, training=phase == "training")
    cluster = Cluster.find("v100-4")

    def problem(cuts: Cuts | None) -> Problem:
        return Problem(step.graph(cuts=cuts), cluster)

    yield _row(phase, "one device", problem(None), "single", seconds, seed, 0.0)
    yield _row(phase, "whole ops", problem(None), "auto", seconds, seed, 0.0)
    for parts in (2, 4):
        begin = time.perf_counter()
        own = problem(cut(parts))
        spent = time.perf_counter() - begin
        yield _row(phase, f"{parts} parts", own, "auto", seconds, seed, spent)
        if parts == 4:
            yield _row(phase, "4 parts", own, "tensor_parallel", seconds, seed, spent)
    yield _chosen(phase, step, cluster, seconds, seed)


def _chosen(phase: str, step: TracedStep, cluster: Cluster, seconds: float, seed: int) -> Row:
    begin = time.perf_counter()
    choice = choose_cuts(CutStep.of(step, lambda graph: Problem(graph, cluster)))
    spent, own = time.perf_counter() - begin, choice.problem
    row = _row(phase, f"auto: {own.graph.cuts}", own, "auto", seconds, seed, spent)
    return row | {"gap over all cuts, %": 100 * (row["seconds"] / choice.least - 1)}


def _row(
    phase: str, ops: str, problem: Problem, method: str, seconds: float, seed: int, cutting: float
) -> Row:
    result = solve(problem, method, time_limit=seconds, seed=seed)
    row = {
        "pass": phase,
        "ops": ops,
        "method": method,
        "count": problem.n,
        "seconds": result.value,
        "bound": result.lower_bound,
        "gap, %": 100 * result.gap if result.gap is not None else None,
        "fits": result.feasible,
        "cutting, s": round(cutting, 1),
        "gap over all cuts, %": None,
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measured = [row for phase in GOALS for row in rows(phase, options.time_limit, options.seed)]
    targets = []
    for phase, goal in GOALS.items():
        (chosen,) = (r for r in measured if r["pass"] == phase and r["ops"].startswith("auto"))
        value = chosen["seconds"]
        name = f"{phase} step by the cuts that planning chooses"
        targets.append(Target(name, f"{goal:.3f} s", f"{value:.3f} s", value <= goal))
    record("cuts_llama", {"steps": measured}, targets, options=options)


if __name__ == "__main__":
    main()
