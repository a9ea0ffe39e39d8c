"""The modules of a step that run their forward pass again before their backward pass."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from situate.data.graph import Graph
from situate.errors import SituateError
from situate.validation import check

ALL = "all"
"""Keyword for the modules by which a step needs least memory."""

AUTO = "auto"
"""Keyword for as many of these modules as the cluster needs; only planning can resolve it."""


@dataclass(frozen=True)
class Recomputed:
    """A module of a graph that runs again.

    Attributes:
        module: its path.
        ops: indices of its ops that run again, in all slices.
        freed: bytes that the forward pass need not keep for the backward pass.
    """

    module: str
    ops: tuple[int, ...]
    freed: int


def recomputed_modules(graph: Graph) -> tuple[Recomputed, ...]:
    """The modules of a graph that run again, in order."""
    ops: dict[str, list[int]] = {module: [] for module in graph.recompute}
    freed = dict.fromkeys(graph.recompute, 0)
    for j, op in enumerate(graph.ops):
        if op.recompute:
            ops[_around(op.module, ops)].append(j)
    for tensor in graph.tensors:
        maker = graph.ops[tensor.producer]
        # Outputs of the second run that others read would otherwise be kept from the first.
        if maker.recompute and any(not graph.ops[c].recompute for c in tensor.consumers):
            freed[_around(maker.module, freed)] += tensor.size
    return tuple(Recomputed(path, tuple(ops[path]), freed[path]) for path in graph.recompute)


def _around(module: str, paths: Container[str]) -> str:
    """The one of these modules that a module is or lies in."""
    while module not in paths:
        module = module.rpartition(".")[0]
    return module


def parse_modules(text: str) -> tuple[str, ...]:
    """The names in a text such as `layers.*,head`.

    Raises:
        SituateError: an empty name, or `auto` among others.
    """
    check(text, str, "recompute")
    names = tuple(name.strip() for name in text.split(","))
    return names if is_auto(names) else checked_modules(names)


def is_auto(names: Sequence[str]) -> bool:
    """True if the modules depend on a cluster."""
    return tuple(names) == (AUTO,)


def checked_modules(names: Sequence[str]) -> tuple[str, ...]:
    """The names of modules of a step that is captured.

    Raises:
        SituateError: they are no list of texts, or one is empty or `auto`.
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise SituateError(
            f"recompute: must be a list of names of modules, such as ['layers.*'], got {names!r}"
        )
    if not all(names):
        raise SituateError("recompute: a name is empty: give paths of modules, such as layers.*")
    if AUTO in names:
        raise SituateError(
            "recompute: auto is chosen for a cluster, by plan, compare and explain, and stands "
            "alone: give names of modules, or all"
        )
    return tuple(names)
