"""`auto` on steps whose batch is cut into slices, beside plans by hand, beside the same
step with replicas of its parameters and beside that which takes its batch whole."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

import situate
from benchmarks.lib.record import Row, Target, record
from situate.data.slices import Slices, parse
from situate.solvers import OF_SLICES
from situate.solvers.step_choices import parameters_once


class Case(NamedTuple):
    """A step, a cluster, slices, replicas, and the seconds of a step that `auto` is to reach."""

    build: Callable[[], Any]
    optimizer: str
    cluster: str
    slices: str
    replicas: str
    goal: float


def inception() -> Any:
    """Inception-V3, batch 32."""
    from situate.zoo import inception_v3

    return inception_v3.build()


def resnet() -> Any:
    """ResNet-50, batch 60."""
    from situate.zoo import resnet

    return resnet.build(3, 4, 6, 3, batch=60)


def llama() -> Any:
    """A Llama of 16 layers of 2048, 16 sequences of 1024 tokens."""
    from transformers import LlamaConfig

    from situate.zoo import transformer

    config = LlamaConfig(
        hidden_size=2048,
        intermediate_size=5504,
        num_hidden_layers=16,
        num_attention_heads=16,
        vocab_size=32_000,
    )
    return transformer._llama(config, 16, 1024)


CASES = {
    "inception_v3": Case(inception, "momentum", "k80-4", "4", "4", 0.270),
    "resnet50": Case(resnet, "momentum", "unequal-24-12", "3:1", "2", 0.107),
    "llama": Case(llama, "adamw", "a100-pcie-4", "8", "4", 0.205),
}


def main(arguments: list[str] | None = None) -> None:
    """Plan by all, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows = [_row(name, CASES[name], options) for name in options.cases]
    behind = [row["step"] for row in rows if row["auto"] > row["by_hand"]]
    targets = [
        Target(
            "auto behind what is done by hand",
            "never",
            ", ".join(behind) or "never",
            not behind,
        ),
        *(_target(row) for row in rows),
    ]
    record("slices", {"slices": rows}, targets, options=options)


def _row(name: str, case: Case, options: argparse.Namespace) -> Row:
    whole = _problem(name, case, None)
    sliced = _problem(name, case, parse(case.slices))
    replicated = _problem(name, case, parse(case.slices, replicas=case.replicas))
    limits = {"time_limit": options.time_limit, "seed": options.seed}
    by_hand = {method: situate.solve(sliced, method).makespan for method in OF_SLICES}
    result, before = situate.solve(sliced, **limits), situate.solve(whole, **limits)
    copied = situate.solve(replicated, **limits)
    chosen = _problem(name, case, _with_choice(replicated))
    return {
        "step": name,
        "cluster": case.cluster,
        "slices": case.slices,
        "ops": sliced.n,
        "one_device": situate.solve(whole, "single").makespan,
        "auto_whole": before.makespan,
        **by_hand,
        "by_hand": min(by_hand.values()),
        "auto": result.makespan,
        "lower_bound": result.lower_bound,
        "replicas": case.replicas,
        "data_parallel_replicas": situate.solve(replicated, "data_parallel").makespan,
        "auto_replicas": copied.makespan,
        "lower_bound_replicas": copied.lower_bound,
        "parameters_once": len(chosen.graph.slices.once) if chosen.graph.slices else 0,
        "auto_once": situate.solve(chosen, **limits).makespan,
        "goal": case.goal,
        "whole_over_auto": before.makespan / result.makespan,
    }


def _with_choice(problem: situate.Problem) -> Slices:
    """The slices of a step of replicas, with the parameters that are better there once."""
    assert problem.graph.slices is not None
    return msgspec.structs.replace(problem.graph.slices, once=parameters_once(problem))


def _problem(name: str, case: Case, slices: Slices | None) -> situate.Problem:
    graph = situate.capture(case.build, optimizer=case.optimizer, name=name, slices=slices)
    return situate.Problem(graph, situate.Cluster.preset(case.cluster))


def _target(row: Row) -> Target:
    return Target(
        f"seconds of a step of {row['step']}, {row['slices']} slices",
        f"at most {row['goal']}",
        f"{row['auto']:.4f}",
        row["auto"] <= row["goal"],
    )


if __name__ == "__main__":
    main()
