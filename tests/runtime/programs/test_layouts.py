"""Strides are as they were captured."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.programs.layouts import is_dense, laid_out  # noqa: E402


@pytest.mark.parametrize(
    ("tensor", "dense"),
    [
        (torch.ones(2, 3), True),
        (torch.ones(2, 3).t(), True),
        (torch.ones(2, 1, 3).transpose(0, 1), True),
        (torch.ones(()), True),
        (torch.ones(2, 3)[:, :2], False),
        (torch.ones(3).expand(2, 3), False),
    ],
)
def test_a_dense_tensor_has_every_element_of_its_memory_once(
    tensor: torch.Tensor, dense: bool
) -> None:
    assert is_dense(tensor) is dense


def test_other_strides_are_copied_into_those_of_the_capture() -> None:
    given = torch.arange(6.0).view(2, 3)
    found = laid_out(given, (1, 2))
    assert found.stride() == (1, 2)
    assert torch.equal(found, given)


def test_the_same_strides_and_those_of_single_elements_stay() -> None:
    given = torch.ones(2, 1, 3)
    assert laid_out(given, (3, 3, 1)) is given
    assert laid_out(given, (3, 99, 1)) is given
