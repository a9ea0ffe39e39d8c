"""Random graphs that use every field there is."""

from __future__ import annotations

from hypothesis import strategies as st

from situate.data.graph import Graph, MachineDevice, Op, Tensor

SIZES = st.integers(0, 2**40)
SECONDS = st.floats(0, 1e9)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of up to 8 ops with names as wild as UTF-8 allows."""
    names = draw(st.lists(TEXTS.filter(bool), min_size=1, max_size=8, unique=True))
    return Graph(
        name=draw(TEXTS.filter(bool)),
        ops=tuple(draw(_ops(name)) for name in names),
        tensors=tuple(draw(_tensors(len(names)))),
        control=tuple(draw(st.lists(_edges(len(names)), max_size=4))) if len(names) > 1 else (),
        unit=draw(st.sampled_from(["s", ""])),
        rules=draw(st.sampled_from(["situate", "doppler"])),
        machine=tuple(draw(st.lists(_devices(), max_size=2))),
        source=draw(st.sampled_from(["situate", "onnx"])),
        warnings=tuple(draw(st.lists(TEXTS, max_size=2))),
    )


def _ops(name: str) -> st.SearchStrategy[Op]:
    return st.builds(
        Op,
        name=st.just(name),
        kind=TEXTS,
        flops=SIZES,
        traffic=SIZES,
        dtype=st.sampled_from(["float32", "int8"]),
        seconds=st.none() | st.dictionaries(TEXTS, SECONDS, max_size=2),
        persistent=SIZES,
        workspace=SIZES,
        group=st.none() | TEXTS,
        module=TEXTS,
        phase=st.sampled_from(["", "forward", "backward", "update"]),
        signature=TEXTS,
    )


@st.composite
def _tensors(draw: st.DrawFn, ops: int) -> list[Tensor]:
    names = draw(st.lists(TEXTS.filter(bool), max_size=6, unique=True))
    producers = [draw(st.integers(0, ops - 1)) for _ in names]
    return [
        Tensor(
            name,
            producer,
            draw(SIZES),
            tuple(op for op in range(producer + 1, ops) if draw(st.booleans())),
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.none() | SECONDS),
        )
        for name, producer in zip(names, producers, strict=True)
    ]


@st.composite
def _edges(draw: st.DrawFn, ops: int) -> tuple[int, int]:
    before = draw(st.integers(0, ops - 2))
    return before, draw(st.integers(before + 1, ops - 1))


def _devices() -> st.SearchStrategy[MachineDevice]:
    return st.builds(MachineDevice, TEXTS, TEXTS, st.none() | st.integers(1, 2**40))
