"""The core is called with tensors, and gives tensors."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.core import array, called  # noqa: E402


def test_numbers_without_gaps_are_shared_and_others_copied():
    whole = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert np.shares_memory(array(whole), whole.detach().numpy())
    turned = array(whole.t())
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, [[0, 3], [1, 4], [2, 5]])


def test_a_function_is_given_as_many_threads_as_there_may_be():
    seen = []

    def double(numbers, threads):
        seen.append(threads)
        return numbers * 2

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with arithmetic():
        (doubled,) = called(double, torch.ones(2))
    torch.set_num_threads(before)
    assert seen == [3]
    assert doubled.tolist() == [2.0, 2.0]


def test_several_arrays_are_several_tensors():
    one, other = called(lambda x, threads: (x, x[:1]), torch.ones(2))
    assert (one.shape, other.shape) == ((2,), (1,))
