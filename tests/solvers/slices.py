"""A training step, of slices or of the whole batch: two layers, forward and backward, two
updates."""

from __future__ import annotations

from situate.data.graph import Graph, Op, Tensor
from situate.data.slices import Slices


def sliced(
    *seconds: float, update: float = 0.0, held: tuple[int, int] = (4, 4), **op: float
) -> Graph:
    """Each slice's ops take so many seconds, four times as long on a CPU; one is no slice.

    Args:
        update: seconds of an update.
        held: bytes of the parameters.
    """
    ops: list[Op] = []
    tensors: dict[str, tuple[int, int, list[int]]] = {}

    def add(name: str, time: float, *reads: str, size: int = 0, **fields: object) -> None:
        for tensor in reads:
            tensors[tensor][2].append(len(ops))
        if size:
            tensors[name] = (len(ops), size, [])
        times = {"x1": time, "x2": 2 * time, "cpu": 4 * time}
        ops.append(Op(name, seconds=times, **fields))  # type: ignore[arg-type]

    for layer in "ab":
        size = held["ab".index(layer)]
        add(layer, 0.0, size=size, persistent=size, group=layer, module=layer, kind="parameter")
    for s, time in enumerate(seconds):
        fields = {"slice": s if len(seconds) > 1 else None, "phase": "forward"}
        add(f"slice{s}/a", time, "a", size=1, module="a", **fields)
        add(f"slice{s}/b", time, "b", f"slice{s}/a", size=1, module="b", **fields)
        fields["phase"] = "backward"
        add(f"slice{s}/gb", time, f"slice{s}/b", size=held[1], module="b", **fields)
        add(f"slice{s}/ga", time, f"slice{s}/gb", size=held[0], module="a", **fields)
    for layer in "ba":
        size, total = held["ab".index(layer)], f"slice0/g{layer}"
        for s in range(1, len(seconds)):
            name = f"{layer}/add{s}"
            add(name, 0.0, total, f"slice{s}/g{layer}", size=size, phase="backward", module=layer)
            total = name
        add(f"{layer}/sgd", update, total, phase="update", group=layer, module=layer)
    made = [Tensor(n, producer, size, tuple(c)) for n, (producer, size, c) in tensors.items()]
    slices = Slices((1,) * len(seconds)) if len(seconds) > 1 else None
    return Graph("sliced", tuple(ops), tuple(made), slices=slices)
