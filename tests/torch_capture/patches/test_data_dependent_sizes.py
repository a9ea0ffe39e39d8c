"""Tensors that a step makes of numbers of its own may have a size that values decide."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

COUNTS = [2, 0, 1, 1]


def numbers():
    return torch.tensor(COUNTS)


def gather_rows(x, places):
    """Rows of `x` by numbers that are made."""
    return x[places % len(x)]


def rows_apart(x):
    """As padding is taken apart, row by row."""
    places = torch.ones(2, 2).nonzero()
    rows = [places[places[:, 0] == row] for row in places[:, 0].unique()]
    return x[torch.cat(rows)[:, 0], torch.cat(rows)[:, 1]]


def written_after(x):
    places = numbers().nonzero()[:, 0]
    places += 1
    return gather_rows(x, places)


def written_before(x):
    values = torch.zeros(4, dtype=torch.int64)
    values[1:3] = 1
    return gather_rows(x, values.nonzero()[:, 0])


def written_through_a_view(x):
    values = torch.zeros(4, dtype=torch.int64)
    view = values[:2]
    values[0] = 1
    return gather_rows(x, view.nonzero()[:, 0])


# Sizes that follow from known numbers are computed during capture; others are refused.
CONSTANT = {
    "nonzero": lambda x: gather_rows(x, numbers().nonzero()[:, 0]),
    "nonzero, an axis each": lambda x: gather_rows(x, numbers().nonzero(as_tuple=True)[0]),
    "where": lambda x: gather_rows(x, torch.where(numbers() > 0)[0]),
    "repeat_interleave": lambda x: gather_rows(x, numbers().repeat_interleave(numbers())),
    "unique": lambda x: gather_rows(x, numbers().unique()),
    "unique, how often": lambda x: gather_rows(x, numbers().unique(return_counts=True)[1]),
    "masked_select": lambda x: gather_rows(x, numbers().masked_select(numbers() > 0)),
    "of a tensor's size": lambda x: gather_rows(x, torch.ones_like(x[:, 0]).nonzero()[:, 0]),
    "a part from a known place": lambda x: x.narrow(0, numbers().nonzero()[:, 0].max() - 2, 2),
    "rows apart": rows_apart,
    "written to after": written_after,
    "written to before": written_before,
    "written to through a view": written_through_a_view,
}


def overwritten(x):
    values = torch.zeros(4, dtype=torch.int64)
    view = values[:2]
    values[:2] = (x[:2, 0] > 0).long()
    return gather_rows(x, view.nonzero()[:, 0])


UNKNOWN = {
    "an input": lambda x: gather_rows(x, (x[:, 0] > 0).nonzero()[:, 0]),
    "chance": lambda x: gather_rows(x, (torch.rand(4) > 0.5).nonzero()[:, 0]),
    "overwritten by an input": overwritten,
}


def loss_of(part):
    return lambda model, x: part(model(x)).square().mean()


def model_and_inputs():
    torch.manual_seed(0)
    return nn.Linear(4, 4), (torch.randn(4, 4),)


@pytest.mark.parametrize("case", CONSTANT)
def test_of_known_numbers_it_is_captured_and_computes_the_same(case):
    (model, inputs), loss = model_and_inputs(), loss_of(CONSTANT[case])
    step = partial(placed_step, given=(inputs, loss))
    assert compare(model, inputs, loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("case", UNKNOWN)
def test_of_others_it_is_refused(case):
    with pytest.raises(SituateError, match=r"depends on the values of a tensor"):
        capture(lambda: (*model_and_inputs(), loss_of(UNKNOWN[case])), name="net")
