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
    parts: int,
    layers: int,
    late: float = 1.0,
    slices: int = 0,
    replicas: int = 0,
    gradient: int = 1,
) -> Graph:
    """A training step of a whole batch or of slices, with layers of `parts` parts.

    Each part of a layer takes a second forward, a second for the gradient of its input and `late`
    seconds for that of its weight, whose update takes no time. It reads all parts of the layer
    before it, of a byte each; the gradient of a weight has `gradient` bytes.
    """
    ops, readers = list[Op](), dict[int, list[int]]()
    equal = replicas and (slices // replicas,) * replicas
    cut = Slices((1,) * slices, replicas=equal or ()) if slices else None

    def add(name: str, place: tuple[int, int], seconds: float, *reads: int, **fields: Any) -> int:
        layer, k = place
        for maker in dict.fromkeys(reads):
            readers.setdefault(maker, []).append(len(ops))
        times, module = {"*": seconds}, f"layer{layer}"
        ops.append(Op(f"{name}{layer}/{k}", seconds=times, module=module, part=k, **fields))
        return len(ops) - 1

    places = [(layer, k) for layer in range(layers) for k in range(parts)]
    copies = [(r, {"replica": r} if replicas else {}) for r in range(max(1, replicas))]
    weight = {
        (r, p): add(f"{r}/weight", p, 0.0, kind="parameter", persistent=1, group=f"{r}{p}", **own)
        for r, own in copies
        for p in places
    }
    gradients: dict[tuple[int, int], list[int]] = {place: [] for place in places}
    for s in range(max(1, slices)):
        own: dict[str, Any] = {"slice": s} if slices else {}
        r = cut.replica[s] if cut else 0
        before: list[int] = []
        forward: list[list[int]] = []
        for layer in range(layers):
            row = [(layer, k) for k in range(parts)]
            before = [add(f"{s}/forward", p, 1.0, *before, weight[r, p], **own) for p in row]
            forward.append(before)
        own["phase"] = "backward"
        for layer in reversed(range(layers)):
            row = [(layer, k) for k in range(parts)]
            inputs = [add(f"{s}/input", p, 1.0, *before, forward[layer][p[1]], **own) for p in row]
            for p in row:
                reads = inputs[p[1]], forward[layer][p[1]]
                gradients[p].append(add(f"{s}/late", p, late, *reads, **own))
            before = inputs
    for r, own in copies:
        for p in reversed(places):
            add(f"{r}/update", p, 0.0, *gradients[p], phase="update", group=f"{r}{p}", **own)
    return Graph(
        "training",
        tuple(ops),
        tuple(
            Tensor(f"t{maker}", maker, gradient if "late" in ops[maker].name else 1, tuple(own))
            for maker, own in readers.items()
        ),
        slices=cut,
        cuts=parse_cuts([f"features={parts}"]),
    )
