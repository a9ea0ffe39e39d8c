"""The values that a forward pass keeps for its backward pass."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.recompute.saved import Saved, enclosing  # noqa: E402
from tests.torch_capture.recompute.models import step  # noqa: E402


# A module saves the bytes of values that only its own ops read.
def test_a_block_keeps_what_only_it_reads():
    saved_bytes = Saved(step().trace).saved_bytes
    # Of 8 samples by 12 features: the layer's result, the norm's, that of GELU with dropout, and
    # the mask; and of 12 features the norm's mean and deviation.
    assert saved_bytes["layers.0"] == 3 * 8 * 12 * 4 + 8 * 12 + 2 * 12 * 4
    assert saved_bytes["layers.0.norm"] == 2 * 12 * 4
    assert saved_bytes["layers"] == 3 * saved_bytes["layers.0"] + 2 * 8 * 6 * 4
    assert "stem" not in saved_bytes


def test_slices_keep_their_own():
    whole, halves = (Saved(step(cut).trace).saved_bytes for cut in (False, True))
    assert halves["layers.0"] == whole["layers.0"] + 2 * 12 * 4


def test_paths_enclose_paths():
    assert [*enclosing("a.b.c")] == ["a", "a.b", "a.b.c"]
    assert [*enclosing("")] == []
