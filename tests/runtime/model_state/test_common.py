"""The tensors that devices share lie side by side in one block."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.model_state.bindings import state_values  # noqa: E402
from situate.runtime.model_state.common import Common, shared_places  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import cut, program  # noqa: E402


def common(*, undone: bool) -> Common:
    """The places of a training step on two devices."""
    found, (model, *_) = program("towers", "adam"), MODELS["towers"]()
    placed = cut(found, 2)
    tensors = state_values(found, placed.names, model)
    changed = frozenset(placed.updated) | placed.overwritten
    layout, places = shared_places(placed, tensors, changed if undone else frozenset())
    return Common(places, torch.zeros(layout.nbytes, dtype=torch.uint8))


def span(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes


def test_nothing_lies_on_anything_else() -> None:
    found = common(undone=True)
    entries = [part for entry in found.state for part in (*entry.all_parts, *entry.copies)]
    spans = sorted(map(span, (*entries, *found.inputs, *found.results)))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    begin, end = span(found.raw)
    assert begin <= spans[0][0]
    assert spans[-1][1] <= end


def test_each_channel_has_a_slot_and_a_flag_and_one_is_to_give_up() -> None:
    found = common(undone=True)
    assert len(found.slots) > 0
    assert found.flags.shape == (len(found.slots) + 1,)


def test_only_what_must_be_undone_is_copied() -> None:
    assert all(len(entry.copies) == len(entry.parts) == 3 for entry in common(undone=True).state)
    assert not any(entry.copies for entry in common(undone=False).state)
