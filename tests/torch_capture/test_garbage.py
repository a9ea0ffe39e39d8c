"""Blocks without garbage collection."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from situate.torch_capture.garbage import without_collection


# The state before the block is the state after it, also after an error.
@pytest.mark.parametrize("enabled", [True, False])
def test_the_state_of_before_returns(enabled) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with suppress(ValueError), without_collection():
            assert not gc.isenabled()
            raise ValueError("an error")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
