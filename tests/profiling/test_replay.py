"""Every op of a step runs by itself on synthetic tensors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.data.cluster import Device  # noqa: E402
from situate.data.graph import Graph, Op  # noqa: E402
from situate.profiling.replay import is_long, replay, seconds_alone, synthetic_tensor  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.subject import (  # noqa: E402
    Subject,
    find_subject,
)

CPU = torch.device("cpu")


def once(call, count):
    """A stopwatch that says that all calls take a second."""
    call()
    return [1.0] * count


# All ops of several models.
@pytest.mark.parametrize(
    ("name", "optimizer"), [("mlp", "adamw"), ("tied", "momentum"), ("tied:inference", None)]
)
def test_every_signature_of_a_step_runs(name: str, optimizer: str | None) -> None:
    program = find_subject(f"tests.profiling.models:{name}", optimizer).program
    timings = replay(program, CPU, once)
    assert timings.keys() == {op.signature for op in program.graph.ops if op.signature}


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(3, 4),
        torch.empty(3, 4).t(),
        torch.empty(4).expand(3, 4),
        torch.empty(0, 4),
        torch.empty((), dtype=torch.int64),
        torch.empty(6, dtype=torch.bool)[::2],
    ],
)
def test_a_made_up_tensor_is_laid_out_like_the_original(tensor: torch.Tensor) -> None:
    copy = synthetic_tensor(tensor, CPU)
    assert (copy.shape, copy.stride(), copy.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)


def test_made_up_numbers_are_ones_that_no_op_minds() -> None:
    assert 0.1 <= float(synthetic_tensor(torch.empty(100), CPU).min()) <= 1.0
    assert int(synthetic_tensor(torch.empty(100, dtype=torch.int64), CPU).max()) == 0


def test_an_op_that_cannot_run_there_has_no_seconds() -> None:
    def stopwatch(call, count):
        calls.append(count)
        if len(calls) == 1:
            raise NotImplementedError("not on this device")
        return [1.0] * count

    calls: list[int] = []
    program = find_subject("tests.profiling.models:mlp:inference").program
    first, *others = [op.signature for op in program.graph.ops if op.signature]
    assert replay(program, CPU, stopwatch).keys() == set(others)
    assert first not in others


# Repetitions.
def test_a_long_op_is_run_once_more_and_a_short_one_often() -> None:
    def stopwatch(seconds: float):
        def watch(call, count):
            counts.append(count)
            return [seconds] * count

        return watch

    program = find_subject("tests.profiling.models:mlp:inference").program
    counts: list[int] = []
    replay(program, CPU, stopwatch(1.0))
    assert set(counts) == {1}
    counts.clear()
    replay(program, CPU, stopwatch(1e-6))
    assert max(counts) > 1


CPU_DEVICE = Device("cpu", "cpu", flops={"float32": 1e9}, bandwidth=1e9)


def products(count: int, distinct: int, flops: int) -> Graph:
    """So many products of matrices, each a signature of a few."""
    ops = [
        Op(f"op{i}", "aten.mm", flops=flops, signature=f"mm {i % distinct}") for i in range(count)
    ]
    return Graph("g", tuple(ops))


# Long steps, whose distinct ops run alone.
@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (products(100, 5, 10**10), True),
        (products(100, 80, 10**10), False),
        (products(100, 5, 10**8), False),
    ],
)
def test_steps_that_take_long_and_repeat_themselves_are_long(graph: Graph, expected: bool) -> None:
    assert is_long(graph, CPU_DEVICE) is expected


def test_a_device_without_rates_has_no_long_steps() -> None:
    assert not is_long(products(100, 5, 10**10), Device("cpu", "cpu"))


def test_every_signature_is_timed_and_threads_are_left_as_they_were(subject: Subject) -> None:
    before = torch.get_num_threads()
    timings = seconds_alone(subject.program, RealDevice("cpu", "cpu", 1))
    assert timings.keys() == {op.signature for op in subject.program.graph.ops if op.signature}
    assert all(0 < t.low <= t.median <= t.high for t in timings.values())
    assert torch.get_num_threads() == before
