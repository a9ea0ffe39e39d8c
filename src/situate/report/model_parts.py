"""The parts of a model that run one after the other, such as its layers, by module paths."""

from __future__ import annotations

import re
from dataclasses import dataclass

from situate.data.graph import Graph

_NUMBERED = re.compile(r"(?:[^.]+\.)*?\d+(?=\.|$)")
"""The beginning of a path up to its first number, such as `model.layers.3`."""


@dataclass(frozen=True)
class ModelParts:
    """The parts of a model.

    Attributes:
        paths: in the order of the forward pass.
        of_op: (n,) the part of each op; -1 in a module that holds parts, or in none.
    """

    paths: tuple[str, ...]
    of_op: tuple[int, ...]


def model_parts(graph: Graph) -> ModelParts:
    """The numbered modules, such as layers, and the outermost modules beside them."""
    modules = [op.module.replace("/", ".") for op in graph.ops]
    holders = {path for module in set(modules) for path in _above_number(module)}
    path_of = {module: _part(module, holders) for module in set(modules)}
    running = (j for j in graph.program_order if graph.ops[j].kind not in ("parameter", "buffer"))
    forward = (path_of[modules[j]] for j in running if graph.ops[j].phase in ("", "forward"))
    number = {path: i for i, path in enumerate(dict.fromkeys(path for path in forward if path))}
    return ModelParts(tuple(number), tuple(number.get(path_of[m], -1) for m in modules))


def _above_number(module: str) -> list[str]:
    """The modules around a numbered one: `a` and `a.b` for `a.b.0.c`."""
    match = _NUMBERED.match(module)
    parts = match[0].split(".")[:-1] if match else []
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


def _part(module: str, holders: set[str]) -> str:
    """The outermost module on the way to `module` that holds no parts; empty if there is none."""
    parts = module.split(".")
    paths = (".".join(parts[:i]) for i in range(1, len(parts) + 1))
    return next((path for path in paths if path not in holders), "")
