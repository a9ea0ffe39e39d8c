"""Updates by Adam and AdamW."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.model_state.adam import update_adam, update_adamw  # noqa: E402


@pytest.mark.parametrize(
    ("update", "make"), [(update_adam, torch.optim.Adam), (update_adamw, torch.optim.AdamW)]
)
def test_an_update_is_pytorchs(update, make):
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = make([parameter], lr=0.1, weight_decay=0.1)
    parts, count = [torch.ones(3), torch.zeros(3), torch.zeros(3)], torch.zeros(())
    for k in range(3):
        parameter.grad = torch.arange(3.0) + k
        update(parts, parameter.grad, count, optimizer.param_groups[0])
        optimizer.step()
    assert count == 3
    assert torch.equal(parts[0], parameter)
    assert torch.equal(parts[1], optimizer.state[parameter]["exp_avg"])
