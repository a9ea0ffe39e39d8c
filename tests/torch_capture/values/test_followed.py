"""Values are followed through views, writes and results, and lost where something unknown comes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.torch_capture.patches.constant_values import constants_known  # noqa: E402
from situate.torch_capture.patches.patched import dispatched  # noqa: E402
from situate.torch_capture.values.followed import (  # noqa: E402
    Followed,
    copied,
    data_forgotten,
    followed,
    may_follow,
)


def values_of(function, first=(1, 2, 3)):
    """The values of the result of `function(known, unknown)`, and their origins."""
    constant, values = torch.tensor(first), Followed()

    def call(run, mode, func, args, kwargs):
        return followed(values, run, func, args, kwargs)

    with FakeTensorMode() as mode, constants_known(), dispatched(call), data_forgotten():
        tensor, unknown = mode.from_tensor(constant), mode.from_tensor(torch.zeros(len(first)))
        values.assign(tensor, constant, 7)
        real = values.of(function(tensor, unknown))
    return real if real is None else (real.tolist(), values.made_of(real))


# Values follow operators and views, and are forgotten with any unknown write.
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda constant, _: constant + 1, [2, 3, 4]),
        (lambda constant, _: constant[1:] * torch.tensor([10, 20]), [20, 60]),
        (lambda constant, _: constant.split(1)[2], [3]),
        (lambda constant, _: torch.zeros(3, dtype=torch.long).copy_(constant), [1, 2, 3]),
    ],
    ids=["result", "view and constant", "of several", "written into a constant"],
)
def test_what_is_made_of_known_values_is_known(function, expected):
    assert values_of(function) == (expected, {7})


def test_a_write_shows_in_all_views():
    def function(constant, _):
        view = constant[1:]
        constant.mul_(2)
        view[0] = 9
        return constant

    assert values_of(function) == ([2, 9, 6], {7})


def test_views_of_a_constant_share_what_is_written():
    def function(constant, _):
        whole = torch.zeros(3, dtype=torch.long)
        whole[:2].copy_(constant[1:])
        return whole

    assert values_of(function) == ([2, 3, 0], {7})


def lost_in(write):
    def function(constant, unknown):
        view = constant[:2]
        write(constant, unknown)
        return view

    return function


@pytest.mark.parametrize(
    "function",
    [
        lambda constant, unknown: constant + unknown,
        lambda constant, unknown: unknown,
        lambda constant, unknown: torch.rand_like(constant.float()),
        lost_in(lambda constant, unknown: constant.copy_(unknown)),
        lost_in(lambda constant, unknown: constant.random_()),
    ],
    ids=["unknown", "other", "chance", "written over", "drawn over"],
)
def test_what_is_made_of_anything_else_is_not_known(function):
    assert values_of(function) is None


def test_small_plain_tensors_are_followed_in_their_layout():
    turned = torch.arange(6).reshape(2, 3).t()
    assert may_follow(turned)
    assert copied(turned).stride() == turned.stride()
    assert not may_follow(torch.empty(3, device="meta"))
    assert not may_follow(torch.empty(2**22 + 1, dtype=torch.bool))
