"""Experts of a fixed capacity against transformers' own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers.models.mixtral.modeling_mixtral import MixtralExperts  # noqa: E402

from situate.zoo import moe  # noqa: E402


def experts():
    """Both in float64 and from a fixed seed, so that only an error can make them differ."""
    torch.manual_seed(0)
    config = transformers.MixtralConfig(
        hidden_size=8, intermediate_size=16, num_local_experts=4, num_experts_per_tok=2
    )
    config._experts_implementation = "eager"
    theirs, ours = MixtralExperts(config).double(), moe.Experts(config).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_()
        for i, expert in enumerate(ours.experts):
            gate, up = theirs.gate_up_proj[i].chunk(2)
            expert.gate.weight.copy_(gate)
            expert.up.weight.copy_(up)
            expert.down.weight.copy_(theirs.down_proj[i])
    return theirs, ours


# Capacity changes only the tokens beyond it.
def test_with_room_for_all_tokens_the_result_is_transformers():
    theirs, ours = experts()
    ours.share = 1.0
    x = torch.randn(6, 8, dtype=torch.float64)
    weights, chosen = torch.rand(6, 4, dtype=torch.float64).topk(2)
    torch.testing.assert_close(ours(x, chosen, weights), theirs(x, chosen, weights))


def test_beyond_capacity_the_lightest_tokens_go_without():
    _, ours = experts()
    ours.share = 0.5
    x = torch.randn(4, 8, dtype=torch.float64)
    chosen = torch.zeros(4, 1, dtype=torch.int64)
    result = ours(x, chosen, torch.tensor([[0.1], [0.9], [0.8], [0.2]]).double())
    assert [bool(row.any()) for row in result] == [False, True, True, False]
