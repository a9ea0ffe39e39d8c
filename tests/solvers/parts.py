"""Steps in parts, made by hand."""

from __future__ import annotations

from typing import Any

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


def training(
    parts: int, layers: int, late: float = 1.0, slices: int = 0, gradient: int = 1
) -> Graph:
    """A training step of a whole batch or of slices, with layers of `parts` parts.

    Each part of a layer takes a second forward, a second for the gradient of its input and `late`
    seconds for that of its weight, whose update takes no time. It reads all parts of the layer
    before it, of a byte each; the gradient of a weight has `gradient` bytes.
    """
    ops, readers = list[Op](), dict[int, list[int]]()

    def add(name: str, place: tuple[int, int], seconds: float, *reads: int, **fields: Any) -> int:
        layer, k = place
        for maker in dict.fromkeys(reads):
            readers.setdefault(maker, []).append(len(ops))
        times, module = {"*": seconds}, f"layer{layer}"
        ops.append(Op(f"{name}{layer}/{k}", seconds=times, module=module, part=k, **fields))
        return len(ops) - 1

    places = [(layer, k) for layer in range(layers) for k in range(parts)]
    group = {place: {"group": f"weight{place}"} for place in places}
    weight = {
        place: add("weight", place, 0.0, kind="parameter", persistent=1, **group[place])
        for place in places
    }
    gradients: dict[tuple[int, int], list[int]] = {place: [] for place in places}
    for s in range(max(1, slices)):
        own: dict[str, Any] = {"slice": s} if slices else {}
        prefix = f"{s}/" if slices else ""
        before: list[int] = []
        forward: list[list[int]] = []
        for layer in range(layers):
            row = [(layer, k) for k in range(parts)]
            before = [add(f"{prefix}forward", p, 1.0, *before, weight[p], **own) for p in row]
            forward.append(before)
        own["phase"] = "backward"
        for layer in reversed(range(layers)):
            row = [(layer, k) for k in range(parts)]
            inputs = [
                add(f"{prefix}input", p, 1.0, *before, forward[layer][p[1]], **own) for p in row
            ]
            for p in row:
                reads = inputs[p[1]], forward[layer][p[1]]
                gradients[p].append(add(f"{prefix}late", p, late, *reads, **own))
            before = inputs
    for p in reversed(places):
        add("update", p, 0.0, *gradients[p], phase="update", **group[p])
    return Graph(
        "training",
        tuple(ops),
        tuple(
            Tensor(f"t{maker}", maker, gradient if "late" in ops[maker].name else 1, tuple(own))
            for maker, own in readers.items()
        ),
        slices=Slices((1,) * slices) if slices else None,
        cuts=parse_cuts([f"features={parts}"]),
    )
