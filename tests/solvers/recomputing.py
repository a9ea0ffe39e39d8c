"""Steps of layers that keep a large value for their backward pass, or make it again."""

from __future__ import annotations

from collections.abc import Sequence

from situate.data.graph import Graph, Op, Tensor

LARGE = 100
"""Bytes that a layer keeps."""


def layered_step(layers: int, recompute: Sequence[str] = ()) -> Graph:
    """A layer makes a large value, in the longer the later it stands, and of that a small one for
    the next; its backward pass reads the large one and the gradient that comes in."""
    ops: list[Op] = []
    reads: dict[str, list[str]] = {}
    control: list[tuple[int, int]] = []
    again = [f"l{k}" for k in range(layers)] if "all" in recompute else list(recompute)

    def add(op: Op, *inputs: str) -> None:
        ops.append(op)
        reads[op.name] = list(inputs)

    def forward(k: int, recomputed: bool = False) -> Op:
        name = f"recompute/l{k}/large" if recomputed else f"l{k}/large"
        phase = "backward" if recomputed else "forward"
        seconds = {"*": 1.0 + k}
        return Op(name, seconds=seconds, module=f"l{k}", phase=phase, recompute=recomputed)

    before: list[str] = []
    for k in range(layers):
        add(forward(k), *before)
        add(Op(f"l{k}/small", seconds={"*": 1.0}, module=f"l{k}", phase="forward"), f"l{k}/large")
        before = [f"l{k}/small"]
    gradient = before[0]
    for k in reversed(range(layers)):
        large = f"l{k}/large"
        if f"l{k}" in again:
            large = f"recompute/l{k}/large"
            control.append((len(ops) - 1, len(ops)))
            add(forward(k, True), *reads[f"l{k}/large"])
        back = Op(f"l{k}/back", seconds={"*": 1.0}, module=f"l{k}", phase="backward")
        add(back, large, gradient)
        gradient = back.name
    index = {op.name: j for j, op in enumerate(ops)}
    tensors = tuple(
        Tensor(name, j, LARGE if name.endswith("large") else 1, _readers(reads, index, name))
        for name, j in index.items()
    )
    order = tuple(f"l{k}" for k in range(layers) if f"l{k}" in again)
    return Graph("layered", tuple(ops), tensors, tuple(control), recompute=order)


def _readers(reads: dict[str, list[str]], index: dict[str, int], name: str) -> tuple[int, ...]:
    return tuple(index[op] for op, inputs in reads.items() if name in inputs)
