"""Letters of splits and slices, and of their gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.cuts.letters import Axis, Letter, operands  # noqa: E402
from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
X = torch.arange(72.0).reshape(6, 12)
Y = torch.arange(144.0).reshape(2, 6, 12)


# Parts of each operator give the whole, along each letter.
@pytest.mark.parametrize(
    ("op", "args", "count"),
    [
        (aten.split.Tensor, (X, 4, -1), 2),
        (aten.split.Tensor, (X, 5, 1), 1),
        (aten.split_with_sizes.default, (X, [4, 4, 4], 1), 2),
        (aten.split_with_sizes.default, (X, [2, 10], 1), 1),
        (aten.unbind.int, (Y, 1), 2),
        (aten.slice.Tensor, (X, 1, 2, 8), 1),
        (aten.slice.Tensor, (X, 1, 4, 8), 1),
        (aten.slice.Tensor, (Y, -1, 6, 2**62), 2),
        (aten.slice.Tensor, (Y, 2, -6), 2),
        (aten.slice.Tensor, (Y, 1, 0, 3), 2),
        (aten.slice.Tensor, (Y[None], 3, 0, 6), 2),
        (aten.slice.Tensor, (X, 1, 0, 12, 2), 1),
        (aten.select.int, (Y, 1, 3), 2),
        (aten.slice_backward.default, (X[:, 2:8], [6, 12], 1, 2, 8, 1), 1),
        (aten.slice_backward.default, (X[:, 4:8], [6, 12], 1, 4, 8, 1), 1),
        (aten.slice_backward.default, (Y[..., :6], [2, 6, 12], 2, 0, 6, 1), 2),
        (aten.select_backward.default, (X, [6, 5, 12], 1, 2), 2),
    ],
)
def test_parts_of_a_slice_give_it(op, args, count) -> None:
    assert len(check_all(op, *args)) == count


# Slices that take all of several equal ranges of features divide each range alike.
def sliced(*bounds: tuple[int, int]) -> list[OneOp]:
    """Slices of one tensor, as if each were the op."""
    steps = [OneOp(aten.slice.Tensor, X.double(), 1, *own) for own in bounds]
    for one in steps:
        x = operands(one.node)[0]
        for other in bounds:
            twin = one.graph.call_function(aten.slice.Tensor, (x, 1, *other))
            twin.meta["val"] = one.mode.from_tensor(X.double()[:, slice(*other)])
    return steps


def check(one: OneOp, letter: Letter) -> None:
    for ranges, bounds in ((1, (0, 2, 4)), (1, (0, 1, 4)), (2, (0, 1, 2))):
        [value] = one.in_parts(letter, bounds, ranges)
        assert torch.equal(value, one.result[0])


def test_slices_of_all_equal_ranges_are_cut_along_them() -> None:
    for one in sliced((0, 4), (4, 8), (8, 2**62)):
        *_, letter = one.letters()
        assert (letter.size, letter.inputs, letter.outputs) == (4, (Axis(1, outer=3),), (Axis(1),))
        check(one, letter)


@pytest.mark.parametrize(
    "bounds", [((0, 4), (4, 8)), ((0, 6), (6, 9), (9, 12)), ((0, 3), (3, 7)), ((0, 12),)]
)
def test_slices_of_some_or_unequal_ranges_are_not(bounds) -> None:
    assert all(len(one.letters()) == 1 for one in sliced(*bounds))


def test_gradients_of_all_equal_ranges_are_cut_along_them() -> None:
    own = OneOp(aten.slice_backward.default, X[:, 4:8].double(), [6, 12], 1, 4, 8, 1)
    total = own.node
    for begin in (0, 8):
        arguments = (operands(own.node)[0], [6, 12], 1, begin, begin + 4, 1)
        other = own.graph.call_function(aten.slice_backward.default, arguments)
        other.meta["val"] = own.node.meta["val"]
        total = own.graph.call_function(aten.add.Tensor, (total, other))
        total.meta["val"] = own.node.meta["val"]
    *_, letter = own.letters()
    assert (letter.size, letter.inputs, letter.outputs) == (4, (Axis(1),), (Axis(1, outer=3),))
    check(own, letter)
