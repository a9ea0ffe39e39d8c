"""Inputs that are cut, and those that cannot be."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture.slices.cut import Cut  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402

CUT = Cut((3, 1), (0, None, 1))


def loss(model, x, y, z):
    return F.mse_loss(model(x), y) + z.mean()


# A cut numbers the inputs of all slices and takes views of them.
def test_the_first_slice_has_the_numbers_of_the_step_s_own_inputs():
    assert [CUT.number(0, k) for k in range(3)] == [0, 1, 2]
    assert [CUT.number(1, k) for k in range(3)] == [3, 1, 4]


def test_pieces_are_views_in_the_order_of_their_numbers():
    tensors = torch.randn(4, 2), torch.randn(5), torch.randn(2, 4)
    pieces = CUT.pieces(tensors)
    assert [tuple(piece.shape) for piece in pieces] == [(3, 2), (5,), (2, 3), (1, 2), (2, 1)]
    assert torch.equal(pieces[4], tensors[2][:, 3:])
    assert pieces[3].data_ptr() == tensors[0][3:].data_ptr()


def test_a_batch_of_another_size_is_refused():
    with pytest.raises(SituateError, match=r"input 0 has shape \[5, 2\], .* for 4 samples along"):
        CUT.pieces((torch.randn(5, 2), torch.randn(5), torch.randn(2, 4)))


def test_divisors_of_a_mean_weigh_by_samples():
    assert CUT.divisors("mean") == [4 / 3, 4]
    assert CUT.divisors("sum") == [1, 1]
    assert [type(d) for d in Cut((2, 2), (0,)).divisors("mean")] == [int, int]


# Inputs that cannot be cut are refused by name.
def test_an_input_without_the_dimension_is_named():
    with pytest.raises(SituateError, match=r"input 2 of shape \[\] has no dimension 0 .*2=whole"):
        captured(loss, torch.tensor(1.0))


def test_an_input_with_other_samples_is_named():
    with pytest.raises(SituateError, match=r"input 2 of shape \[2, 8\] has 2 samples .*2=AXIS"):
        captured(loss, torch.randn(2, 8))
    graph = captured(loss, torch.randn(2, 8), axes={"2": 1})
    assert graph.slices.axes == {"2": 1}


def test_an_unknown_input_is_refused():
    with pytest.raises(SituateError, match=r"no input is called '3'; known: 0, 1, 2"):
        captured(loss, torch.randn(8), axes={"3": 1})


def test_an_input_must_be_cut():
    with pytest.raises(SituateError, match="no input is cut"):
        captured(loss, torch.randn(8), axes={"0": None, "1": None, "2": None})


def test_inputs_by_name_are_called_by_name():
    import situate
    from situate.data.slices import Slices

    def build():
        inputs = {"x": torch.randn(8, 6), "mask": torch.ones(3)}
        return nn.Linear(6, 3), inputs, lambda m, x, mask: (m(x) * mask).mean()

    with pytest.raises(SituateError, match=r"input mask of shape \[3\] has 3 samples"):
        situate.capture(build, slices=Slices((1, 1)))
    assert situate.capture(build, slices=Slices((1, 1), axes={"mask": None})).slices is not None


def test_inference_has_no_slices():
    import situate
    from situate.data.slices import Slices

    def build():
        return nn.Linear(6, 3), (torch.randn(8, 6),), None

    with pytest.raises(SituateError, match="slices are of a step that trains"):
        situate.capture(build, training=False, slices=Slices((1, 1)))
