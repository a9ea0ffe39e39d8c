"""PyTorch is changed for as long as it traces, and no longer."""

from __future__ import annotations

from contextlib import suppress

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.torch_capture.patches.constant_values import constants_known  # noqa: E402
from situate.torch_capture.patches.interpolation import interpolation_whole  # noqa: E402
from situate.torch_capture.patches.kernel_layouts import layouts_as_computed  # noqa: E402
from situate.torch_capture.patches.margin_losses import margins_whole  # noqa: E402
from situate.torch_capture.patches.norm_statistics import statistics_as_computed  # noqa: E402

WHOLE = {
    interpolation_whole: torch.ops.aten.upsample_bilinear2d.vec,
    margins_whole: torch.ops.aten.multi_margin_loss.default,
}


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
