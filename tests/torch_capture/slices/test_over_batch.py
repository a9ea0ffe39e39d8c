"""Steps whose batch norms cannot take statistics over all slices."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


def mse(model, x, y):
    return F.mse_loss(model(x), y)


class Averaging(nn.BatchNorm1d):
    """Keeps an average of its outputs."""

    def __init__(self):
        super().__init__(6)
        self.register_buffer("average", torch.zeros(6))

    def forward(self, x):
        out = super().forward(x)
        self.average.mul_(0.9).add_(out.detach().mean(0))
        return out


def native(model, x, y):
    zeros, ones = torch.zeros(6), torch.ones(6)
    norm = torch.ops.aten._batch_norm_with_update_functional
    return mse(model, norm(x, ones, zeros, zeros, ones, 0.1, 1e-5)[0], y)


def otherwise(model, x, y):
    return mse(model, F.batch_norm(x if len(x) > 4 else x + 0, None, None, training=True), y)


class Looking(nn.Module):
    """Normalises one way or the other, by whether a mask hides anything."""

    def __init__(self):
        super().__init__()
        self.one, self.other, self.last = nn.BatchNorm1d(6), nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, x, mask):
        return self.last(self.one(x) if mask.all() else self.other(x))


def looking(model, x, y, mask):
    return F.mse_loss(model(x, mask), y)


def overwriting(model, x, y, table):
    table.mul_(2)
    return mse(model, F.batch_norm(x, None, None, training=True) + table, y)


# Norms that cannot take statistics over the batch are refused; norms without such statistics stay.
@pytest.mark.parametrize(
    ("loss", "more", "options", "message"),
    [
        (mse, (), {}, "no batch norm takes statistics of the samples: leave --batch-norm out"),
        (
            mse,
            (),
            {"model": nn.Sequential(Averaging(), nn.Linear(6, 3))},
            r"buffer '0.average' is written by every slice for the next, .*--batch-norm slice",
        ),
        (
            overwriting,
            (torch.ones(6),),
            {"axes": {"2": None}},
            r"input 2 is written by every slice for the next, .*--batch-norm slice",
        ),
        (
            looking,
            (torch.arange(8) < 6,),
            {"model": Looking()},
            "they do not all run the same batch norms: .*--batch-norm slice",
        ),
        (
            native,
            (),
            {},
            r"_norm_with_update_functional of loss is called as such, .*--batch-norm slice",
        ),
        (
            otherwise,
            (),
            {"loss": "mean"},
            "the step runs other ops at a slice's size than at the batch's, .*--batch-norm slice",
        ),
    ],
)
def test_it_is_refused_in_a_line(loss, more, options, message):
    with pytest.raises(SituateError, match=message) as error:
        captured(loss, *more, batch_norm="batch", **options)
    assert "\n" not in str(error.value)


def test_norms_of_each_sample_and_those_that_infer_stay_as_they_are():
    model = nn.Sequential(
        nn.BatchNorm1d(6), nn.Linear(6, 6), nn.BatchNorm1d(6).eval(), nn.Unflatten(1, (2, 3))
    )
    model.append(nn.InstanceNorm1d(2)).append(nn.Flatten()).append(nn.Linear(6, 3))
    graph = captured(mse, model=model, batch_norm="batch")
    assert sum(op.kind == "situate.batch_norm_statistics" for op in graph.ops) == 1
