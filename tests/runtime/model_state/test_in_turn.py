"""The loop of optimisers that update one parameter after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.model_state.in_turn import UpdatesInTurn  # noqa: E402


class Halving(UpdatesInTurn):
    """Divides each parameter by the divisor of its group."""

    def _update(self, parameter: torch.Tensor, group: Mapping[str, Any]) -> None:
        parameter /= group["divisor"]


# As in PyTorch's optimisers: gradients decide which parameters change, groups hold the settings.
def test_parameters_with_a_gradient_are_updated_by_their_group() -> None:
    parameters = [torch.nn.Parameter(torch.tensor(8.0)) for _ in range(3)]
    groups = [{"params": parameters[:2]}, {"params": parameters[2:], "divisor": 4.0}]
    optimizer = Halving(groups, {"divisor": 2.0})
    for parameter in (parameters[0], parameters[2]):
        parameter.grad = torch.ones(())
    assert optimizer.step(lambda: 5.0) == 5.0
    assert [parameter.item() for parameter in parameters] == [4.0, 8.0, 2.0]
