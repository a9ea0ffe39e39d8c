"""The predicted memory of a placed program is the memory that PyTorch's allocator reports."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.data.cost_lookup import workspace_of  # noqa: E402
from situate.runtime.programs.footprint import footprint, largest  # noqa: E402
from situate.runtime.programs.lines import OUTSIDE_MEMORY, Line, straight_line  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import DEVICES, cut, program  # noqa: E402


class Source:
    """Local names of ten bytes each, but for `v9`, which was received."""

    memory = {f"v{k}": f"v{k}" for k in range(10)} | {"v7": "v0", "v8": OUTSIDE_MEMORY}
    nbytes = dict.fromkeys((f"v{k}" for k in range(7)), 10)


def bytes_of(*lines: Line) -> int:
    return largest(straight_line(lines, Source.memory, {OUTSIDE_MEMORY, "v9"}), Source, {3: 5})


# Rules of memory, line by line.
def test_a_value_takes_memory_until_it_is_read_for_the_last_time() -> None:
    assigned = Line("v0 = f0()"), Line("v1 = f1(v0)"), Line("v2 = f1(v1)"), Line("done0(v2)")
    assert bytes_of(*assigned) == 20
    assert bytes_of(*assigned, Line("done1(v0)")) == 30


def test_an_unread_value_takes_memory_too() -> None:
    assert bytes_of(Line("v0 = f0()"), Line("v1 = f0()")) == 10
    assert bytes_of(Line("v0, _, v1, = f0()")) == 20


def test_a_view_keeps_its_source() -> None:
    lines = Line("v0 = f0()"), Line("v7 = f1(v0)"), Line("v1 = f2(v0)"), Line("v2 = f2(v1)")
    assert bytes_of(*lines, Line("done0(v2)")) == 20
    assert bytes_of(*lines, Line("done0(v7)")) == 30


def test_an_overwriting_result_takes_no_new_memory() -> None:
    over = Line("v1 = f1(v0)", (("v0", "v1 = f2(v0)"),))
    view = Line("v2 = f1(v7)", (("v7", "v2 = f2(v7)"),))
    assert bytes_of(Line("v0 = f0()"), over, Line("done0(v1)")) == 10
    assert bytes_of(Line("v0 = f0()"), Line("v7 = f3(v0)"), view, Line("done0(v2)")) == 10
    assert bytes_of(Line("v0 = f0()"), over, Line("done0(v1)"), Line("done1(v0)")) == 20


def test_a_received_tensor_lies_elsewhere() -> None:
    assert bytes_of(Line("v9 = take0()"), Line("v8 = f1(p0)"), Line("done0(v9)")) == 0


def test_results_in_a_channel_take_no_other_memory() -> None:
    assigned = Line("v1 = f1(v0)", direct="v1 = f1(v0, out=s0)")
    assert bytes_of(Line("v0 = f0()"), assigned, Line("send0(v1)", direct="post0()")) == 10


def test_an_op_has_its_workspace_while_it_runs() -> None:
    lines = Line("v0 = f0()", op=2), Line("v1 = f1(v0)", op=3), Line("v2 = f1(v1)", op=4)
    assert bytes_of(*lines) == 25


# Whole steps against the allocator.
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("name", ["tied", "unrolled", "strided", "wide"])
def test_a_step_holds_what_was_told(name: str, devices: int) -> None:
    model, inputs, _ = MODELS[name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    placed_step = cut(program(name, "momentum"), devices)
    predicted = footprint(placed_step, workspace_of(placed_step.program.graph.ops, None))
    with PlacedStep(placed_step, model, optimizer, DEVICES[:devices], keep=False) as step:
        peak_bytes = step.memory(*inputs)
    assert peak_bytes == pytest.approx([predicted[d] for d in placed_step.used], rel=0.03)
    assert peak_bytes[-1] == predicted[placed_step.used[-1]]
