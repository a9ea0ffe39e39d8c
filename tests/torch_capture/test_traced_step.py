"""A step that is traced once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import situate  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.torch_capture.traced_step import trace_step  # noqa: E402
from tests.torch_capture.recompute.models import blocks  # noqa: E402


def test_its_graphs_are_those_that_are_captured_one_by_one():
    rule, slices = "adamw:clip=1.0", Slices((1, 1))
    step = trace_step(blocks, rule, "model", slices)
    for modules in (["layers.1"], []):
        alone = situate.capture(blocks, optimizer=rule, slices=slices, recompute=modules)
        assert step.graph(modules).hash == alone.hash
        assert step.graph(modules).recompute == alone.recompute
