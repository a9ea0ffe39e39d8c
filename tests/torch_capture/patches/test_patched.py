"""PyTorch is changed for as long as it traces, and no longer."""

from __future__ import annotations

from contextlib import suppress

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.torch_capture.patches.constant_values import constants_known  # noqa: E402
from situate.torch_capture.patches.eager_kernels import (  # noqa: E402
    interpolation_whole,
    margins_whole,
)
from situate.torch_capture.patches.kernel_results import (  # noqa: E402
    layouts_as_computed,
    statistics_as_computed,
)
from situate.torch_capture.patches.patched import REPLACEMENT, code_replaced  # noqa: E402

WHOLE = {
    interpolation_whole: torch.ops.aten.upsample_bilinear2d.vec,
    margins_whole: torch.ops.aten.multi_margin_loss.default,
}


# Every replacement ends with its block, even after an error.
@pytest.mark.parametrize("trace", WHOLE)
def test_an_operator_has_its_kernels_again(trace):
    before = dict(WHOLE[trace].py_kernels)
    with trace():
        assert WHOLE[trace].py_kernels.keys() < before.keys()
    assert WHOLE[trace].py_kernels == before


@pytest.mark.parametrize("trace", [constants_known, layouts_as_computed, statistics_as_computed])
def test_fake_tensors_are_dispatched_as_before_even_after_an_error(trace):
    before = FakeTensorMode.dispatch
    with suppress(KeyboardInterrupt), trace():
        assert FakeTensorMode.dispatch is not before
        raise KeyboardInterrupt
    assert FakeTensorMode.dispatch is before


# Replaced code runs under every name of the function.
class Doubling:
    def call(self, x):
        return 2 * x


class Child(Doubling):
    def call(self, x, more=1):
        return super().call(x) + more


bound = Child().call


def test_replaced_code_runs_by_every_name():
    def replacement(original, self, x, **options):
        return 100 * original(self, x, **options)

    with code_replaced(Child.call, replacement):
        assert (bound(3), Child().call(3), bound(3, more=2)) == (700, 700, 800)
    assert (bound(3), Child().call(3)) == (7, 7)


def test_replaced_code_is_as_before_even_after_an_error():
    code = Child.call.__code__
    with suppress(KeyboardInterrupt), code_replaced(Child.call, lambda *_: None):
        assert bound(3) is None
        raise KeyboardInterrupt
    assert Child.call.__code__ is code
    assert REPLACEMENT not in Child.call.__globals__
