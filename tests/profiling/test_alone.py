"""Long steps: their distinct ops alone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.data.cluster import Device  # noqa: E402
from situate.data.graph import Graph, Op  # noqa: E402
from situate.profiling.alone import is_long, seconds_alone  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.subject import Subject  # noqa: E402

CPU = Device("cpu", "cpu", flops={"float32": 1e9}, bandwidth=1e9)


def products(count: int, distinct: int, flops: int) -> Graph:
    """So many products of matrices, each a signature of a few."""
    ops = [
        Op(f"op{i}", "aten.mm", flops=flops, signature=f"mm {i % distinct}") for i in range(count)
    ]
    return Graph("g", tuple(ops))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (products(100, 5, 10**10), True),
        (products(100, 80, 10**10), False),
        (products(100, 5, 10**8), False),
    ],
)
def test_steps_that_take_long_and_repeat_themselves_are_long(graph: Graph, expected: bool) -> None:
    assert is_long(graph, CPU) is expected


def test_a_device_without_rates_has_no_long_steps() -> None:
    assert not is_long(products(100, 5, 10**10), Device("cpu", "cpu"))


def test_every_signature_is_timed_and_threads_are_left_as_they_were(subject: Subject) -> None:
    before = torch.get_num_threads()
    found = seconds_alone(subject.program, RealDevice("cpu", "cpu", 1))
    assert found.keys() == {op.signature for op in subject.program.graph.ops if op.signature}
    assert all(0 < t.low <= t.median <= t.high for t in found.values())
    assert torch.get_num_threads() == before
