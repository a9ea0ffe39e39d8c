"""The changes of a step can be undone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.memory import Layout  # noqa: E402
from situate.runtime.model_state.state import Entry, flat, lay_out  # noqa: E402
from tests.runtime.model_state.entries import contents, entry, same  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "moments"),
    [("sgd", []), ("momentum", ["momentum_buffer"]), ("adamw", ["exp_avg", "exp_avg_sq"])],
)
def test_a_parameter_lies_beside_what_its_optimiser_keeps(kind: str, moments: list[str]) -> None:
    found = entry(torch.ones(2, 3).t(), kind)
    assert list(found.moments) == moments
    assert {(part.shape, part.stride()) for part in found.parts} == {((3, 2), (1, 3))}
    assert len(found.copies) == 1 + len(moments)
    assert all(float(moment.abs().sum()) == 0 for moment in found.moments.values())


def test_nothing_is_copied_of_what_no_step_changes() -> None:
    layout = Layout()
    [places] = lay_out(layout, [torch.ones(3)], {}, frozenset())
    found = Entry.at(places, torch.zeros(layout.nbytes, dtype=torch.uint8))
    assert (found.copies, found.moments) == ((), {})
    found.value.fill_(2.0)
    found.keep(1)
    found.undo(1)
    assert found.value.tolist() == [2.0] * 3


def change(*entries: Entry) -> None:
    """All that a step may."""
    for found in entries:
        for part in (*found.parts, found.count):
            part += 1


def test_what_was_kept_is_undone() -> None:
    found = entry(torch.arange(6.0).view(2, 3).t())
    change(found)
    before = contents(found)
    found.keep(4)
    change(found)
    assert not same(contents(found), before)
    found.undo(4)
    assert same(contents(found), before)


def test_only_what_was_copied_is_undone() -> None:
    found = entry(torch.zeros(6))
    found.begin(1)
    flat(found.copies[0])[:4].copy_(flat(found.value)[:4])
    found.copied(4)
    found.value[:4] = 1.0
    found.value[4:] = 5.0
    found.undo(1)
    assert found.value.tolist() == [0.0] * 4 + [5.0] * 2


def test_a_step_that_did_not_come_here_leaves_nothing_to_undo() -> None:
    found = entry(torch.zeros(6))
    found.keep(1)
    change(found)
    after = contents(found)
    found.undo(2)
    assert same(contents(found), after)


def test_undoing_twice_is_undoing_once() -> None:
    found = entry(torch.zeros(6))
    found.keep(1)
    change(found)
    for _ in range(2):
        found.undo(1)
    assert found.value.tolist() == [0.0] * 6


def test_a_copy_elsewhere_is_taken_back() -> None:
    found = entry(torch.arange(3.0))
    other = found.on(torch.device("cpu"))
    change(other)
    assert found.value.tolist() == [0.0, 1.0, 2.0]
    found.take(other)
    assert same(contents(found), contents(other))
    assert found.count == 1
