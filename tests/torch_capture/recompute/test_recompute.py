"""Steps and names that recompute refuses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import situate  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from tests.torch_capture.recompute.models import blocks  # noqa: E402


def test_inference_recomputes_nothing():
    with pytest.raises(SituateError, match="recompute is of a step that trains: leave it out"):
        situate.capture(blocks, training=False, recompute=["all"])


@pytest.mark.parametrize("names", ["all", [1], [""]])
def test_names_must_be_a_list_of_texts(names):
    with pytest.raises(SituateError, match="recompute: "):
        situate.capture(blocks, recompute=names)
