"""PyTorch's arithmetic within a block and after it, and calls of the core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.host.machine import at_most  # noqa: E402
from situate.policies.arithmetic import (  # noqa: E402
    MAX_THREADS,
    arithmetic,
    array,
    call_core,
    product,
    thread_count,
)

DENORMAL = 1e-40


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)
    torch.set_flush_denormal(False)


# The numbers of threads inside and outside the block.
def test_within_there_is_one_thread_and_afterwards_as_many_as_before():
    with arithmetic():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_functions_of_the_core_use_the_threads_outside_the_block():
    assert thread_count() == 1
    with arithmetic():
        assert thread_count() == 3
    assert thread_count() == 1


def test_there_are_no_more_threads_than_the_caller_allows():
    with at_most(2), arithmetic():
        assert thread_count() == 2


def test_steps_are_too_short_for_many_threads():
    torch.set_num_threads(64)
    with arithmetic():
        assert thread_count() == MAX_THREADS


# Products in halves have equal bits on any number of threads.
@pytest.mark.parametrize("shape", [(1, 3, 2), (5, 4, 3), (600, 400, 700)])
def test_a_product_is_the_same_on_one_thread_and_on_several(shape):
    rows, inner, columns = shape
    a, right = torch.rand(inner, rows).t(), torch.rand(inner, columns)
    alone = product(a, right)
    with arithmetic():
        assert torch.equal(product(a, right), alone)
    torch.testing.assert_close(alone, a @ right)


def test_a_product_leaves_pytorchs_threads_and_denormals_as_they_are():
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot take denormals for zero")
    product(torch.rand(600, 400), torch.rand(400, 700))
    assert torch.get_num_threads() == 3
    assert _halved(DENORMAL) > 0


@pytest.mark.parametrize("inner", [3, 500])
def test_a_product_has_its_gradient(inner):
    a, right = torch.rand(400, inner).requires_grad_(), torch.rand(inner, 500).requires_grad_()
    weights = torch.rand(400, 500)
    with arithmetic():
        products = torch.autograd.grad((product(a, right) * weights).sum(), (a, right))
    expected = torch.autograd.grad((a @ right * weights).sum(), (a, right))
    torch.testing.assert_close(products, expected)


# Denormal numbers, and settings after an error.
def test_within_denormals_are_zero_and_afterwards_numbers():
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot take denormals for zero")
    with arithmetic():
        assert _halved(DENORMAL) == 0
    assert _halved(DENORMAL) > 0


def test_flushing_of_denormals_is_restored():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot take denormals for zero")
    with arithmetic():
        pass
    assert _halved(DENORMAL) == 0


def test_an_error_within_leaves_what_there_was_before():
    with pytest.raises(KeyError), arithmetic():
        raise KeyError
    assert torch.get_num_threads() == 3


def _halved(number: float) -> float:
    return float(torch.full((1,), number).mul_(0.5))


# Tensors to the core and back.
def test_numbers_without_gaps_are_shared_and_others_copied():
    whole = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert np.shares_memory(array(whole), whole.detach().numpy())
    turned = array(whole.t())
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, [[0, 3], [1, 4], [2, 5]])


def test_a_function_is_given_as_many_threads_as_there_may_be():
    thread_counts_seen = []

    def double(numbers, threads):
        thread_counts_seen.append(threads)
        return numbers * 2

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with arithmetic():
        (doubled,) = call_core(double, torch.ones(2))
    torch.set_num_threads(before)
    assert thread_counts_seen == [3]
    assert doubled.tolist() == [2.0, 2.0]


def test_several_arrays_are_several_tensors():
    one, other = call_core(lambda x, threads: (x, x[:1]), torch.ones(2))
    assert (one.shape, other.shape) == ((2,), (1,))
