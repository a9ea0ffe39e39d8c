"""Models of transformers in which several heads share keys and values."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.grouped_query_attention import heads_share, repeated  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

HEADS, SHARED = 4, 2


def build(window: int = 32):
    """A Mistral of two layers that reads 16 tokens."""
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        sliding_window=window,
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=SHARED,
    )
    tokens = torch.randint(0, 50, (2, 16))
    return (
        transformers.MistralForCausalLM(config),
        (tokens,),
        lambda model, x: model(x, labels=x, use_cache=False).loss,
    )


def compared(window: int):
    model, inputs, loss = build(window)
    step = partial(placed_step, given=(inputs, loss))
    return compare(model, inputs, loss, sgd, step, threads=1)


def test_a_placed_step_is_equal_to_the_last_bit():
    found = compared(window=32)
    assert found.within(0.0)
    assert found.decomposed == ()


def test_what_transformers_repeats_for_a_mask_that_it_needs_is_named():
    found = compared(window=8)
    assert found.within(1e-6)
    assert found.decomposed == ("attention of transformers with a mask and shared keys and values",)


def test_keys_and_values_are_not_repeated():
    graph = capture(build, name="m")
    attention = {j for j, op in enumerate(graph.ops) if "flash_attention" in op.kind}
    read = {graph.ops[t.producer].kind for t in graph.tensors if attention & {*t.consumers}}
    assert "aten.mm" in read
    assert "aten.clone" not in read


def test_what_transformers_does_is_as_before():
    attention = pytest.importorskip("transformers.integrations.sdpa_attention")
    before = attention.use_gqa_in_sdpa
    with heads_share(), repeated():
        assert attention.use_gqa_in_sdpa is not before
    assert attention.use_gqa_in_sdpa is before
