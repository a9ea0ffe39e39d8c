"""Layers as a replay sees them."""

from __future__ import annotations

from benchmarks.homes.llamacpp.model_files import FULL_SIZE, MODELS
from situate.language.activations.blocks import PASS, Matrix
from situate.language.architectures import ARCHITECTURES


def test_a_matrix_becomes_a_leaf_on_its_device() -> None:
    leaf = Matrix((64, 32), 1000, 2).tensor()
    assert (leaf.shape, leaf.size, leaf.device) == ((64, 32), 1000, 2)
    assert leaf.weight
    assert leaf.stored


# Every architecture that is replayed is run by the benchmark, and known to the reader.
def test_replayed_architectures_are_those_of_the_benchmark() -> None:
    full_size = {kind for kind, _, _ in FULL_SIZE.values()}
    assert set(PASS) == set(MODELS) | full_size
    assert set(PASS) <= set(ARCHITECTURES)
