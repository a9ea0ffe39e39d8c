"""`auto` on steps of many slices within a time limit, beside plans by hand: each is
captured and planned by the command."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.lib import child
from benchmarks.lib.record import Row, Target, record
from situate.solvers import OF_SLICES

LIMIT_WANTED = 1.05
"""Share of its time limit that a search may take."""


class Case(NamedTuple):
    """A step in slices and the demands on its plan.

    Attributes:
        function: that builds the model, as the command takes it.
        seconds: the time limit.
        by_hand: methods.
        ratio: of the plan's seconds to those of the best of them, at most.
        peak: bytes of the process that captures and plans it, at most.
    """

    function: str
    optimizer: str
    cluster: str
    slices: int
    seconds: float
    by_hand: Sequence[str]
    ratio: float
    peak: float


def llama_70b() -> Any:
    """Llama 2 70B, 32 sequences of 2048 tokens."""
    from situate.zoo import transformer

    return transformer.llama_70b(32)


CASES = {
    "inception_v3": Case(
        "benchmarks.search.slices:inception", "momentum", "k80-4", 8, 3.0, OF_SLICES, 1.0, 1e9
    ),
    "llama_70b": Case(
        "benchmarks.search.large_slices:llama_70b",
        "adamw",
        "h100-2x8",
        32,
        60.0,
        ("one_f_one_b", "interleaved", "fsdp"),
        0.95,
        3e9,
    ),
}


def main(arguments: list[str] | None = None) -> None:
    """Plan by all, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows, methods, targets = list[Row](), list[Row](), list[Target]()
    for name in options.cases:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as cache:
            auto = _auto(case, options.seed, cache)
            by_hand = _by_hand(case, cache)
        best = min(by_hand, key=by_hand.__getitem__)
        row = {"step": name, **auto, "by_hand": by_hand[best], "best_by_hand": best}
        rows.append(row | {"ratio": row["value"] / row["by_hand"]})
        methods += [{"step": name, "method": m, "value": v} for m, v in by_hand.items()]
        targets += _targets(case, rows[-1])
    record("large_slices", {"auto": rows, "by hand": methods}, targets, options=options)


def _auto(case: Case, seed: int, cache: str) -> Row:
    """`situate plan`, with nothing captured before."""
    answer, process = _command("plan", case, cache, "--seed", str(seed))
    return {
        "cluster": case.cluster,
        "slices": case.slices,
        "seconds": process.seconds,
        "search_seconds": answer["seconds"],
        "other_seconds": process.seconds - answer["seconds"],
        "peak_mb": process.peak_bytes / 1e6,
        "evaluations": answer["evaluations"],
        "value": answer["value"],
        "gap": answer["gap"],
        "feasible": answer["feasible"],
    }


def _by_hand(case: Case, cache: str) -> dict[str, float]:
    """Seconds of a step by method, of those whose plan fits."""
    answer, _ = _command("compare", case, cache, "--methods", ",".join(case.by_hand))
    result = {row["method"]: row for row in answer["methods"]}
    return {name: result[name]["value"] for name in case.by_hand if result[name]["feasible"]}


def _command(
    name: str, case: Case, cache: str, *options: str
) -> tuple[dict[str, Any], child.Child]:
    limits = ["--slices", str(case.slices), "--time-limit", str(case.seconds), "--json"]
    step = [case.function, "--optimizer", case.optimizer, "--cluster", case.cluster]
    process = child.run(child.situate(name, *step, *limits, *options), {"XDG_CACHE_HOME": cache})
    if process.status:
        raise RuntimeError(process.errors)
    return json.loads(process.output), process


def _targets(case: Case, row: Row) -> list[Target]:
    step, ratio, took, peak = (row[key] for key in ("step", "ratio", "search_seconds", "peak_mb"))
    within = LIMIT_WANTED * case.seconds
    return [
        Target(
            f"seconds of a step of {step}, over the best by hand",
            f"under {case.ratio:g}",
            f"{ratio:.3f}",
            row["feasible"] and ratio < case.ratio,
        ),
        Target(f"{step} planned", f"under {within:.2f} s", f"{took:.2f} s", took < within),
        Target(
            f"{step} captured and planned",
            f"under {case.peak / 1e9:g} GB",
            f"{peak / 1e3:.2f} GB",
            peak * 1e6 < case.peak,
        ),
    ]


if __name__ == "__main__":
    main()
