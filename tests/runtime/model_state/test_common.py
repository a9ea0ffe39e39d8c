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
    mapped_common, (model, *_) = program("towers", "adam"), MODELS["towers"]()
    placed_step = cut(mapped_common, 2)
    tensors = state_values(mapped_common, placed_step.names, model)
    changed = frozenset(placed_step.updated) | placed_step.overwritten
    layout, places = shared_places(placed_step, tensors, changed if undone else frozenset())
    return Common(places, torch.zeros(layout.nbytes, dtype=torch.uint8))


def span(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes


# The layout of the block.
def test_nothing_lies_on_anything_else() -> None:
    mapped_common = common(undone=True)
    entries = [part for entry in mapped_common.state for part in (*entry.all_parts, *entry.copies)]
    spans = sorted(map(span, (*entries, *mapped_common.inputs, *mapped_common.results)))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    begin, end = span(mapped_common.raw)
    assert begin <= spans[0][0]
    assert spans[-1][1] <= end


def test_each_channel_has_a_slot_and_a_flag_and_one_is_to_give_up() -> None:
    mapped_common = common(undone=True)
    assert len(mapped_common.slots) > 0
    assert mapped_common.flags.shape == (len(mapped_common.slots) + 1,)


def test_only_what_must_be_undone_is_copied() -> None:
    assert all(len(entry.copies) == len(entry.parts) == 3 for entry in common(undone=True).state)
    assert not any(entry.copies for entry in common(undone=False).state)
