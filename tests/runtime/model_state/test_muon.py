"""Muon for matrices, with AdamW for the rest."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.model_state.muon import MuonAdamW  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer, kind_of  # noqa: E402


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4))


def trained(model: Any, *optimizers: Any) -> list[Any]:
    """Parameters after three steps."""
    torch.manual_seed(1)
    for _ in range(3):
        model(torch.randn(5, 8)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return [p.detach().clone() for p in model.parameters()]


def split(model: Any) -> tuple[list[Any], list[Any]]:
    parameters = list(model.parameters())
    return [p for p in parameters if p.ndim == 2], [p for p in parameters if p.ndim != 2]


# One optimiser equals PyTorch's two, to the last bit.
@pytest.mark.parametrize(
    ("muon", "adamw"),
    [({}, {}), ({"lr": 0.02, "adjust_lr_fn": "match_rms_adamw", "nesterov": False}, {"lr": 0.1})],
)
def test_it_equals_muon_beside_adamw(muon: dict[str, Any], adamw: dict[str, Any]) -> None:
    one, two = network(), network()
    matrices, others = split(two)
    both = optim.Muon(matrices, **muon), optim.AdamW(others, **adamw)
    ours = trained(one, MuonAdamW(one.parameters(), muon=muon, adamw=adamw))
    assert all(map(torch.equal, ours, trained(two, *both)))


def test_its_state_is_saved_and_loaded() -> None:
    model = network()
    optimizer = MuonAdamW(model.parameters())
    trained(model, optimizer)
    other = MuonAdamW(model.parameters())
    other.load_state_dict(optimizer.state_dict())
    weight, bias = model[0].weight, model[0].bias
    assert torch.equal(
        other.state[weight]["momentum_buffer"], optimizer.state[weight]["momentum_buffer"]
    )
    assert other.state[bias]["step"] == 3


# Its kind is Muon's, which PyTorch's own Muon has too.
def test_kinds() -> None:
    model = network()
    assert type(default_optimizer("muon", list(model.parameters()))) is MuonAdamW
    assert kind_of(MuonAdamW(model.parameters())) == "muon"
    assert kind_of(optim.Muon(split(model)[0])) == "muon"
    with pytest.raises(SituateError, match="Muon"):
        kind_of(optim.RMSprop(model.parameters()))


def test_options_are_checked_by_pytorch() -> None:
    with pytest.raises(ValueError, match="momentum"):
        MuonAdamW(network().parameters(), muon={"momentum": -1.0})
