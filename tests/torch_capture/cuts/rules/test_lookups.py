"""Letters of ops that take entries of a dimension by index, or put entries there."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import situate  # noqa: E402
from situate.data.cuts import parse_cuts  # noqa: E402
from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
X = torch.randn(6, 12, 4)
ROWS = torch.tensor([0, 5, 11, 5, 2, 2])
ADDENDS = torch.randn(6, 6, 4)
INDICES = torch.randint(12, (6, 8, 4))
ENTRIES = torch.randn(6, 8, 4)


# The dimensions of a tensor but for the one that indices count, and the indices.
def test_entries_are_taken_along_the_indices_and_along_other_dimensions() -> None:
    assert len(check_all(aten.index_select.default, X, 1, ROWS)) == 3


def test_entries_of_all_positions_are_taken_along_each_dimension() -> None:
    assert len(check_all(aten.gather.default, X, 1, INDICES)) == 3


def test_fewer_positions_than_a_dimension_has_leave_it_whole() -> None:
    letters = check_all(aten.gather.default, X, 1, INDICES[:4])
    assert sorted(letter.size for letter in letters) == [4, 8]


# Two entries may be put at one place, so a part has all entries of the dimension that they are put
# along.
@pytest.mark.parametrize("op", [aten.scatter_add.default, aten.scatter.src])
def test_entries_are_put_along_other_dimensions(op) -> None:
    distinct = torch.rand(6, 12, 4).argsort(1)[:, :8]
    assert len(check_all(op, X, 1, distinct, ENTRIES)) == 2


def test_addends_are_divided_along_other_dimensions() -> None:
    assert len(check_all(aten.index_add.default, X, 1, ROWS, ADDENDS)) == 2


# Entries that are added to zeros are partial results, in each part of zeros of its own.
class Combination(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x):
        outputs = x.view(4, 6, 8).bmm(self.up).flatten(0, 1)
        return torch.zeros_like(x[:12]).index_add(0, torch.arange(24) % 12, outputs)


def test_addends_to_zeros_are_partial_results() -> None:
    def build():
        return Combination(), (torch.randn(24, 8),), lambda m, x: m(x).square().mean()

    ops = situate.capture(build, cuts=parse_cuts(["experts=2"])).ops
    kinds = ("aten.new_zeros", "aten.index_add")
    assert [(op.kind, op.part) for op in ops if op.kind in kinds] == [
        (kind, part) for part in (0, 1) for kind in kinds
    ]


def test_new_zeros_are_divided_along_every_dimension() -> None:
    assert len(OneOp(aten.new_zeros.default, X, [6, 4]).letters()) == 2
    assert len(check_all(aten.new_full.default, X, [6, 4], 2.0)) == 2
