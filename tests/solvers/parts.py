"""Steps in parts, made by hand."""

from __future__ import annotations

from situate import Graph
from situate.data.cuts import parse_cuts
from situate.data.graph import Op, Tensor
from situate.data.slices import Slices


def step(parts: int = 2, layers: int = 1, slices: int = 0, longest: int = 1) -> Graph:
    """Layers of `parts` parts each, whose results the next layer reads; part 0 takes `longest`
    times as long."""
    ops, tensors = [], []
    for s in range(max(1, slices)):
        own = s if slices else None
        before: list[int] = []
        for layer in range(layers):
            made = []
            for k in range(parts):
                name, seconds = f"{s}/{layer}/{k}", {"*": float(longest if k == 0 else 1)}
                made.append(len(ops))
                ops.append(Op(name, seconds=seconds, module=f"layer{layer}", part=k, slice=own))
            for maker in before:
                tensors.append(Tensor(f"t{s}/{layer}/{maker}", maker, 8, tuple(made)))
            before = made
    cut = Slices((1,) * slices) if slices else None
    cuts = parse_cuts([f"features={parts}"])
    return Graph("step", tuple(ops), tuple(tensors), slices=cut, cuts=cuts)
