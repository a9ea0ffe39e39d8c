"""Inputs are read where they lie if that may be, results are nobody else's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.bindings import state_values  # noqa: E402
from situate.runtime.common import Common, shared_places  # noqa: E402
from situate.runtime.exchange import Exchange  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import cut, program  # noqa: E402

Made = tuple[Exchange, Common, list[torch.Tensor]]


def exchange(*, apart: bool) -> Made:
    """That of a training step, what it is over, and inputs for it."""
    found, (model, inputs, _) = program("towers"), MODELS["towers"]()
    placed = cut(found, 1)
    tensors = state_values(found, placed.names, model)
    layout, places = shared_places(placed, tensors, frozenset())
    common = Common(places, torch.zeros(layout.nbytes, dtype=torch.uint8))
    return Exchange(found, common, apart), common, list(inputs)


def test_a_device_of_its_own_reads_copies() -> None:
    made, common, inputs = exchange(apart=True)
    assert made.read(made.checked(tuple(inputs))) is None
    assert all(map(torch.equal, common.inputs, inputs))


def test_the_device_in_this_process_reads_what_the_caller_has() -> None:
    made, _, inputs = exchange(apart=False)
    read = made.read(made.checked(tuple(inputs)))
    assert read is not None
    assert [a.data_ptr() for a in read] == [b.data_ptr() for b in inputs]


def test_what_is_laid_out_otherwise_is_copied() -> None:
    made, common, (x, *rest) = exchange(apart=False)
    other = x.t().contiguous().t()
    read = made.read(made.checked((other, *rest)))
    assert read is not None
    assert read[0] is common.inputs[0]
    assert torch.equal(read[0], x)


def test_other_inputs_than_were_captured_are_refused() -> None:
    made, _, (x, *rest) = exchange(apart=False)
    with pytest.raises(SituateError, match=r"input 0 is float64 .*, the step was captured with"):
        made.checked((x.double(), *rest))
    with pytest.raises(SituateError, match="give such batches, or capture and plan for this one"):
        made.checked((x[:1], *rest))


@pytest.mark.parametrize("apart", [True, False])
def test_what_a_step_returns_stays_when_the_next_one_writes(apart: bool) -> None:
    made, common, _ = exchange(apart=apart)
    written = made.written()
    (common.results if written is None else written)[0].fill_(1.0)
    loss = made.returned(written)
    following = made.written()
    (common.results if following is None else following)[0].fill_(2.0)
    assert loss.item() == 1.0
