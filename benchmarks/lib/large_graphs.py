"""Large graphs of four shapes, written as situate's own JSON line by line: other people's graphs,
which share no code with situate's families."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

PERSISTENT_BYTES = 24_000_000_000
"""Bytes that all ops hold for the whole step: half of the memory of `CLUSTER`."""

CLUSTER = """name = "sixteen"
[[devices]]
name = "g"
count = 16
memory = "3 GB"
[[links]]
from = "*"
to = "*"
bandwidth = 1e10
latency = 1e-5
"""
"""The machine that the graphs are planned for, as a cluster file."""

Readers = Iterator[list[int]]
"""The ops that read each op's tensor, op by op."""


def layered(ops: int, draw: random.Random, width: int = 64) -> Readers:
    """Layers of 64 ops, each of which is read by one to three of the next layer."""
    for op in range(ops):
        first = (op // width + 1) * width
        layer = range(first, min(first + width, ops))
        yield draw.sample(layer, min(len(layer), draw.choice((1, 1, 2, 3))))


def nearby(ops: int, draw: random.Random, reach: float = 50.0) -> Readers:
    """Random edges: an op is read by one to three ops some 50 places later on average."""
    for op in range(ops):
        readers = {
            op + 1 + int(draw.expovariate(1 / reach)) for _ in range(draw.choice((1, 1, 2, 3)))
        }
        yield [reader for reader in readers if reader < ops]


def chains(ops: int, draw: random.Random, count: int = 16) -> Readers:
    """Sixteen deep chains; one op in a hundred is read by another chain too."""
    for op in range(ops):
        along = [op + count] if op + count < ops else []
        across = op + count + draw.randrange(1, count)
        yield [*along, across] if across < ops and draw.random() < 0.01 else along


def wide(ops: int, draw: random.Random, branch: int = 4) -> Readers:
    """One op is read by the first ops of all branches of four ops, and one op reads their last."""
    last = ops - 1
    for op in range(ops):
        if op == 0:
            yield list(range(1, last, branch))
        elif op == last:
            yield []
        else:
            ends = (op - 1) % branch == branch - 1 or op + 1 == last
            yield [last if ends else op + 1]


SHAPES: dict[str, Callable[[int, random.Random], Readers]] = {
    "layered": layered,
    "random": nearby,
    "chains": chains,
    "wide": wide,
}

LARGEST_TENSOR, WIDE_BYTES = 1_000_000, 4_000_000_000
"""Bytes of a tensor at most, and of all tensors of a wide graph, which may be live at once."""


def write(path: Path, shape: str, ops: int, seed: int) -> None:
    """Write a graph; the same for the same shape, number of ops and seed."""
    largest = WIDE_BYTES // ops if shape == "wide" else LARGEST_TENSOR
    draw = random.Random(f"{shape} {ops} {seed}")
    most_bytes = 2 * PERSISTENT_BYTES // ops
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"format":"situate-graph","version":1,"name":"{shape}-{ops}","ops":[')
        file.write(",\n".join(_op(op, draw, most_bytes) for op in range(ops)))
        file.write('],"tensors":[')
        tensors = enumerate(SHAPES[shape](ops, draw))
        file.write(",\n".join(_tensor(op, read, draw, largest) for op, read in tensors if read))
        file.write("]}")


def _op(op: int, draw: random.Random, most_bytes: int) -> str:
    seconds = f"{draw.uniform(1e-5, 1e-3):.8f}"
    return (
        f'{{"name":"o{op}","seconds":{{"*":{seconds}}},"persistent":{draw.randrange(most_bytes)}}}'
    )


def _tensor(op: int, readers: list[int], draw: random.Random, largest: int) -> str:
    consumers = ",".join(f'"o{reader}"' for reader in sorted(readers))
    size = draw.randrange(1, largest)
    return f'{{"name":"t{op}","producer":"o{op}","size":{size},"consumers":[{consumers}]}}'
