"""situate against other rules on random homes, all in one simulator.

    .venv/bin/python -m benchmarks.homes.peers [--homes 200]

A home is one to four cards of `CARDS` in slots of several widths, with a host; a model is one of
`MODELS` that the home's memory holds. The rules are `--fit` (which fills memory in the order of the
devices), layers in proportion to memory, the same by gguf-parser's formulas of memory, and all
experts on the CPU. Each row is a home.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.homes.gguf_parser import gguf_parser_plan
from benchmarks.lib.record import Row, Target, record
from situate.data.cluster import Cluster, Device, Link
from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.config import config_of
from situate.language.home import Home, home_of
from situate.language.model import LanguageModel
from situate.language.planning.planner import Planner
from situate.language.planning.rivals import rivals
from situate.language.planning.workload import Workload
from situate.language.reading import model_of_config

CARDS = (
    "RTX 5090", "RTX 4090", "RTX 3090", "RTX 4060 Ti", "RTX 3060", "RTX 2080", "GTX 1080 Ti",
    "Tesla P40",
)  # fmt: skip
"""Models of cards; `situate.language.cards` has their memory and rates."""

SLOTS = (1e9, 4e9, 8e9, 13e9, 25e9)
"""Bytes/s of slots: a x1 riser to PCIe 4.0 x16."""

HOSTS = ((32, 40e9, 0.8e12), (64, 60e9, 1.5e12), (128, 80e9, 2e12), (256, 200e9, 4e12))
"""GiB, bytes/s and FLOP/s of hosts."""

MODELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Llama 8B", {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256,
    }),
    ("Qwen3 32B", {
        "model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120,
        "intermediate_size": 25600, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 151936,
    }),
    ("Qwen3 30B-A3B", {
        "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
    }),
    ("Qwen3 235B-A22B", {
        "model_type": "qwen3_moe", "num_hidden_layers": 94, "hidden_size": 4096,
        "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128,
        "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
        "moe_intermediate_size": 1536,
    }),
)  # fmt: skip
QUANTS = ("Q4_K_M", "Q8_0")
RULES = ("--fit", "by memory", "gguf-parser", "experts on CPU")


def random_home(rng: random.Random) -> tuple[Home, list[str]]:
    """One to four cards in slots and a host, and the models of the cards."""
    cards = [rng.choice(CARDS) for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
    slots = [rng.choice(SLOTS) for _ in cards]
    size, bandwidth, flops = rng.choice(HOSTS)
    devices = [Device(f"gpu{i}", model=model) for i, model in enumerate(cards)]
    host = Device("cpu", kind="cpu", memory=size * 2**30, flops={"float32": flops},
                  bandwidth=bandwidth, threads=16)  # fmt: skip
    links = [Link(f"gpu{i}", "cpu", slot, 1e-5) for i, slot in enumerate(slots)]
    links += [
        Link(f"gpu{i}", f"gpu{j}", min(slots[i], slots[j]) * 2 / 3, 2e-5)
        for i in range(len(cards))
        for j in range(i)
    ]
    return home_of(Cluster("home", (*devices, host), tuple(links))), cards


def row(rng: random.Random, models: Sequence[LanguageModel]) -> Row | None:
    """One home with a model; None if the model does not fit."""
    home, cards = random_home(rng)
    model = rng.choice(models)
    planner = Planner(model, home, CacheOptions(16384), Workload(2000, 500))
    start = perf_counter()
    try:
        plan = planner.plan()
    except SituateError:
        return None
    seconds = perf_counter() - start
    others = dict(rivals(planner))
    if (estimated := gguf_parser_plan(planner)) is not None:
        others["gguf-parser"] = estimated
    return {
        "model": f"{model.name} {model.file_type}",
        "gpus": cards,
        "unequal": len(set(planner.kinds)) > 1,
        "seconds": plan.seconds,
        "gap": plan.gap,
        "idle_gpus": len(cards) - len(plan.layout.order),
        "planning_seconds": seconds,
        "rivals": {name: other.seconds for name, other in others.items() if other.feasible},
        "overfull": [name for name, other in others.items() if not other.feasible],
    }


def ratios(rows: Sequence[Row], rule: str) -> list[float]:
    """Seconds of a rule's layouts over those of situate's plans, sorted."""
    return sorted(r["rivals"][rule] / r["seconds"] for r in rows if rule in r["rivals"])


def by_rule(rows: Sequence[Row]) -> Iterator[Row]:
    """Medians and extremes by rule, over all homes and over those with unequal cards."""
    for rule in RULES:
        for homes, group in (("all", rows), ("unequal", [r for r in rows if r["unequal"]])):
            if values := ratios(group, rule):
                yield {
                    "rule": rule,
                    "homes": homes,
                    "count": len(values),
                    "overfull": sum(rule in r["overfull"] for r in group),
                    "least": values[0],
                    "median": median(values),
                    "most": values[-1],
                }


def of_plans(rows: Sequence[Row]) -> Row:
    """Gaps and planning times over all homes."""
    return {
        "homes": len(rows),
        "median_gap": median(r["gap"] for r in rows),
        "proved": sum(r["gap"] == 0 for r in rows),
        "with_idle_gpus": sum(r["idle_gpus"] > 0 for r in rows),
        "median_planning_seconds": median(r["planning_seconds"] for r in rows),
        "longest_planning_seconds": max(r["planning_seconds"] for r in rows),
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    """The figures that plans are to reach against `--fit`, and their gaps."""
    every = ratios(rows, "--fit")
    unequal = ratios([r for r in rows if r["unequal"]], "--fit")
    plans = of_plans(rows)
    floors = (
        ("seconds of --fit over those of the plan, least", 0.99, every[0]),
        ("the same, median", 1.15, median(every)),
        ("the same, median of homes with unequal cards or slots", 1.5, median(unequal)),
    )
    ceilings = (
        ("gap to the best plan that flags can say, median", 0.02, plans["median_gap"]),
        ("seconds of planning, longest", 30.0, plans["longest_planning_seconds"]),
    )
    return [
        *(Target(what, f">= {goal}", f"{x:.3f}", x >= goal) for what, goal, x in floors),
        *(Target(what, f"<= {goal}", f"{x:.3f}", x <= goal) for what, goal, x in ceilings),
    ]


def main(arguments: list[str] | None = None) -> None:
    """Plan random homes, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--homes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    models = [
        model_of_config(config_of(values), quant, name)
        for name, values in MODELS
        for quant in QUANTS
    ]
    rows: list[Row] = []
    while len(rows) < options.homes:
        if (result := row(rng, models)) is not None:
            rows.append(result)
            print(len(rows), result["model"], f"{result['seconds']:.2f}", flush=True)
    record(
        "homes_peers",
        {"rules": list(by_rule(rows)), "plans": [of_plans(rows)], "homes": rows},
        targets(rows),
        options=options,
    )


if __name__ == "__main__":
    main()
