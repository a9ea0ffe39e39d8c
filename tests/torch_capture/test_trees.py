"""Nested values, caches of transformers and sequences among the inputs of a step."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from situate.runtime.equality import COMPARED_STEPS, compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.trees import flatten, names, replace_sequences, sequences  # noqa: E402  # noqa: E402
from tests.runtime.placing import placed_step  # noqa: E402

LAYERS, HEADS, LENGTH, WIDTH = 2, 2, 6, 8
SIZES = {
    "vocab_size": 50,
    "hidden_size": HEADS * WIDTH,
    "intermediate_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
}
KINDS = {
    "whole": lambda: transformers.LlamaConfig(**SIZES),
    "windows": lambda: transformers.MistralConfig(**SIZES, sliding_window=4),
    "states": lambda: transformers.MambaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=LAYERS
    ),
}
WORDS = torch.arange(LENGTH)[None]
KEY_BYTES = LENGTH * HEADS * WIDTH * 4


def network(kind):
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(KINDS[kind]())


def filled():
    """A cache of the tokens read so far."""
    cache = transformers.DynamicCache(config=KINDS["whole"]())
    for layer in range(LAYERS):
        cache.update(*torch.ones(2, 1, HEADS, LENGTH, WIDTH).unbind(), layer)
    return cache


def compare_network(model, inputs):
    return compare(model, inputs, None, None, partial(placed_step, given=(inputs, None)), threads=1)


# Caches of transformers count as the tensors in them.
def test_what_a_model_read_is_held_to_the_end():
    graph = capture(lambda: (network("whole"), (WORDS,), None), training=False, name="m")
    outputs = sorted(tensor.size for tensor in graph.tensors if tensor.output)
    assert outputs == [KEY_BYTES] * 2 * LAYERS + [LENGTH * 50 * 4]


@pytest.mark.parametrize("kind", KINDS)
def test_a_returned_cache_is_equal_to_the_last_bit(kind):
    assert compare_network(network(kind), {"input_ids": WORDS}).within(0.0)


def test_a_step_returns_a_cache_of_numbers_that_the_model_takes():
    model = network("whole")
    with placed_step(model, None, given=({"input_ids": WORDS}, None)) as step:
        cache = step(input_ids=WORDS).past_key_values
    with torch.no_grad():
        expected = model(WORDS).past_key_values
        logits, expected_logits = (
            model(WORDS, past_key_values=past).logits for past in (cache, expected)
        )
    torch.testing.assert_close(logits, expected_logits)


def test_a_given_cache_is_read_and_left_as_it_was():
    model, inputs = network("whole"), {"input_ids": WORDS[:, :1], "past_key_values": filled()}
    assert compare_network(model, inputs).within(0.0)
    assert inputs["past_key_values"].get_seq_length() == LENGTH
    graph = capture(lambda: (model, inputs, None), training=False, name="m")
    assert sum(op.kind == "input" for op in graph.ops) == 1 + 2 * LAYERS


def test_another_cache_may_be_given_and_is_read():
    model, word = network("whole"), WORDS[:, :1]
    with placed_step(
        model, None, given=({"input_ids": word, "past_key_values": filled()}, None)
    ) as step:
        other = filled()
        other.layers[0].values *= 2
        result = step(input_ids=word, past_key_values=other).logits
    with torch.no_grad():
        assert torch.equal(result, model(word, past_key_values=other).logits)


def test_leaves_and_structure_make_the_value_again():
    cache = filled()
    leaves, structure = flatten({"cache": cache, "count": 3})
    again = structure.unflatten(leaves)
    assert again["count"] == 3
    assert again["cache"] is not cache
    assert again["cache"].layers[1].keys is cache.layers[1].keys
    assert flatten(again)[1] == structure


def test_a_static_cache_is_written_where_it_is():
    config = KINDS["whole"]()
    model = network("whole").eval()
    cache = transformers.StaticCache(config=config, max_cache_len=LENGTH + COMPARED_STEPS)
    with torch.no_grad():
        model(WORDS, past_key_values=cache)
    before = [layer.keys.clone() for layer in cache.layers]
    word = {"input_ids": WORDS[:, :1], "position_ids": torch.tensor([[LENGTH]])}
    result = compare_network(model, word | {"past_key_values": cache})
    assert result.within(0.0)
    assert result.inputs
    assert not any(map(torch.equal, before, (layer.keys for layer in cache.layers)))


def test_leaves_are_named_by_what_leads_to_them():
    cache = transformers.DynamicCache()
    cache.update(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1), 0)
    assert names({"mask": 1, "pair": (2, {"b": 3})}) == ["'mask'", "'pair'[0]", "'pair'[1]['b']"]
    assert names(([1], 2)) == ["0[0]", "1"]
    assert len(names((cache,))) == len(flatten((cache,))[0])


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
