"""Layouts that people write by hand for a step: tensor, data, expert and context parallel, and
pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from situate import Result, solve
from situate.data.cuts import parse_cuts
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.solvers.cut_choice import CutStep

NODE = 8
"""GPUs of a node."""

INNER = ("heads", "features", "vocabulary")
"""Kinds whose parameters Megatron-LM divides."""

SLICE_METHODS = ("data_parallel", "fsdp", "one_f_one_b", "interleaved", "zero_bubble")

MOST_OPS = 150_000
"""Most ops of a layout, as those of the step times its parts or slices."""


@dataclass(frozen=True)
class Layout:
    """A layout, the cuts of its step, and the method that places them."""

    name: str
    cuts: tuple[str, ...]
    method: str = "tensor_parallel"


def layouts(step: CutStep, ops: int, devices: int) -> Iterator[Layout]:
    """Layouts in parts: on the GPUs of a node, and on all.

    Args:
        ops: of the step.
        devices: the number of GPUs.
    """
    for count in dict.fromkeys((NODE, devices)):
        if ops * count > MOST_OPS:
            continue
        experts, inner = (_cuts(step, kinds, count) for kinds in (("experts",), INNER))
        outer = [cut for kind in ("batch", "sequence") for cut in _cuts(step, (kind,), count)]
        within = (*experts, *inner, *_cuts(step, ("sequence",), count))
        yield Layout(f"tensor parallel by {count}", within)
        for cut in outer:
            yield Layout(f"fsdp, {cut}", (cut, *inner))
            if experts:
                yield Layout(f"expert parallel, {cut}", (*experts, cut, *inner))


def _cuts(step: CutStep, kinds: Sequence[str], count: int) -> tuple[str, ...]:
    """Cuts into as many parts, of the kinds whose units they divide."""
    return tuple(
        f"{kind}={count}"
        for kind in kinds
        if kind in step.units and all(size % count == 0 for size in step.units[kind])
    )


def best_by_hand(step: CutStep) -> tuple[str, Result] | None:
    """The layout with the shortest step that fits, and its plan; None if none fits."""
    plans = list(_plans(step))
    fitting = [pair for pair in plans if pair[1].feasible]
    return min(fitting, key=lambda pair: pair[1].value, default=None)


def _plans(step: CutStep) -> Iterator[tuple[str, Result]]:
    whole = step.problem_of(None)
    for layout in layouts(step, whole.n, len(accelerators(whole))):
        with suppress(SituateError):
            problem = step.problem_of(parse_cuts(layout.cuts))
            yield layout.name, solve(problem, layout.method)
    yield from _sliced_plans(step)


def _sliced_plans(step: CutStep) -> Iterator[tuple[str, Result]]:
    """Data parallelism and pipelines of whole ops, with a slice for each sequence."""
    count = min(step.units.get("batch", (1,)))
    in_slices = step.sliced((1,) * count) if count > 1 else None
    problem = None if in_slices is None else in_slices.problem_of(None)
    if problem is None or problem.n > MOST_OPS:
        return
    for method in SLICE_METHODS:
        with suppress(SituateError):
            yield f"{method}, {count} slices", solve(problem, method)
