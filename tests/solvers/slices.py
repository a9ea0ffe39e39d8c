"""A training step, of slices or of the whole batch: two layers, forward and backward, two
updates."""

from __future__ import annotations

from situate.data.graph import Graph, Op, Tensor
from situate.data.slices import Slices, Sums


def sliced(
    *seconds: float,
    update: float = 0.0,
    held: tuple[int, int] = (4, 4),
    replicas: tuple[int, ...] = (),
    adding: float = 0.0,
    sums: Sums = "chain",
) -> Graph:
    """Each slice's ops take so many seconds, four times as long on a CPU; one is no slice.

    Args:
        update: seconds of an update.
        held: bytes of the parameters.
        replicas: of the parameters, by the slices that read each, if there are any.
        adding: seconds of an addition of gradients.
        sums: their order, of 2**k slices without replicas where it is a tree.
    """
    is_cut = len(seconds) > 1
    slices = Slices((1,) * len(seconds), replicas=replicas, sums=sums) if is_cut else None
    reads = slices.replica if slices else (0,)
    ops: list[Op] = []
    tensors: dict[str, tuple[int, int, list[int]]] = {}

    def add(name: str, time: float, *read: str, size: int = 0, **fields: object) -> None:
        for tensor in read:
            tensors[tensor][2].append(len(ops))
        if size:
            tensors[name] = (len(ops), size, [])
        times = {"x1": time, "x2": 2 * time, "cpu": 4 * time}
        ops.append(Op(name, seconds=times, **fields))  # type: ignore[arg-type]

    def at(r: int) -> dict[str, int]:
        return {"replica": r} if replicas else {}

    def called(r: int, name: str) -> str:
        return f"replica{r}/{name}" if replicas else name

    numbers = range(max(1, len(replicas)))
    for r in numbers:
        for layer, size in zip("ab", held, strict=True):
            name = called(r, layer)
            fields = {"persistent": size, "group": name, "module": layer, "kind": "parameter"}
            add(name, 0.0, size=size, **fields, **at(r))
    for s, (time, r) in enumerate(zip(seconds, reads, strict=True)):
        a, b = called(r, "a"), called(r, "b")
        fields = {"slice": s if slices else None, "phase": "forward"}
        add(f"slice{s}/a", time, a, size=1, module="a", **fields)
        add(f"slice{s}/b", time, b, f"slice{s}/a", size=1, module="b", **fields)
        fields["phase"] = "backward"
        add(f"slice{s}/gb", time, f"slice{s}/b", size=held[1], module="b", **fields)
        add(f"slice{s}/ga", time, f"slice{s}/gb", size=held[0], module="a", **fields)
    for layer, size in (("b", held[1]), ("a", held[0])):
        fields = {"size": size, "phase": "backward", "module": layer}
        parts = [f"slice{s}/g{layer}" for s in range(len(seconds))]
        while sums == "tree" and len(parts) > 1:
            pairs = list(zip(parts[::2], parts[1::2], strict=True))
            parts = [f"{layer}/{len(pairs)}add{k}" for k in range(len(pairs))]
            for name, pair in zip(parts, pairs, strict=True):
                add(name, adding, *pair, **fields)
        result: dict[int, str] = {}
        for s, (r, gradient) in enumerate(zip(reads, parts, strict=False)):
            before = result.get(r)
            result[r] = gradient if before is None else called(r, f"{layer}/add{s}")
            if before is not None:
                add(result[r], adding, before, gradient, **fields, **at(r))
        total = result[0]
        for r in numbers[1:]:
            add(f"{layer}/sum{r}", adding, total, result[r], **fields)
            total = f"{layer}/sum{r}"
        for r in numbers:
            group = called(r, layer)
            add(f"{group}/sgd", update, total, phase="update", group=group, module=layer, **at(r))
    made = [Tensor(n, producer, size, tuple(c)) for n, (producer, size, c) in tensors.items()]
    return Graph("sliced", tuple(ops), tuple(made), slices=slices)
