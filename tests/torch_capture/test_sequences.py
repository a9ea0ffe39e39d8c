"""Sequences without tensors among the inputs of a step."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.trees import replace_sequences, sequences  # noqa: E402

X = torch.ones(2)


# Sequences among the inputs are found by name and replaced.
@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ((X, (3, 4), [5]), {"1": (3, 4), "2": [5]}),
        ({"x": X, "sizes": [(2, 3), (4, 5)]}, {"sizes": [(2, 3), (4, 5)]}),
        ((X, {"x": X, "words": ["a", "b"]}), {"1['words']": ["a", "b"]}),
        ((X, [X, (1, 2)]), {"1[1]": (1, 2)}),
        ((X, X.shape, (), "ab", 3, None), {}),
    ],
)
def test_the_outermost_without_tensors_have_names(inputs, expected):
    assert sequences(inputs) == expected


def test_an_array_of_numpy_is_one():
    assert list(sequences((X, np.arange(3)))) == ["1"]
    assert sequences((X, np.array(3))) == {}


def test_others_take_their_places():
    inputs = X, {"x": X, "words": ["a", "b"]}, (3, 4)
    x, words, numbers = replace_sequences(inputs, {"1['words']": ["a"], "2": (4,)})
    assert x is X
    assert (words["x"] is X, words["words"], numbers) == (True, ["a"], (4,))
