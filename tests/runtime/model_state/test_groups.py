"""An optimiser's groups stay as they were when the step was made; their numbers may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.model_state.groups import Groups  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import STEPS, assert_same, state  # noqa: E402

SGD, Adam, AdamW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
Make = Callable[[Any], Any]
Change = Callable[[Any], object]

AGAIN = "since the step was made: compile the plan again$"
MOVED = f"the optimizer's groups of parameters were changed {AGAIN}"


def plain(parameters: Any) -> Any:
    return SGD(parameters, lr=0.1)


def two_groups(parameters: Any) -> Any:
    first, *others = parameters
    return SGD([{"params": [first]}, {"params": others}], lr=0.1)


def momentum(parameters: Any) -> Any:
    return SGD(parameters, lr=0.1, momentum=0.9)


def freeze(optimizer: Any) -> None:
    optimizer.param_groups[0]["params"][1].requires_grad_(False)


def add(optimizer: Any) -> None:
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})


def remove(optimizer: Any) -> None:
    del optimizer.param_groups[0]["params"][0]


def move(optimizer: Any) -> None:
    one, other = optimizer.param_groups
    one["params"].append(other["params"].pop())


def option(name: str, value: object) -> Change:
    return lambda optimizer: optimizer.param_groups[-1].update({name: value})


def decouple(optimizer: Any) -> None:
    optimizer.load_state_dict(AdamW(optimizer.param_groups[0]["params"]).state_dict())


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (plain, add, MOVED),
        (plain, remove, MOVED),
        (two_groups, move, MOVED),
        (plain, freeze, f"parameter '[a-z.]+' was frozen {AGAIN}"),
        (plain, option("momentum", 0.9), f"the optimizer's momentum was switched on {AGAIN}"),
        (momentum, option("dampening", 0.5), "optimizer SGD: leave dampening out"),
        (Adam, option("amsgrad", True), "optimizer Adam: leave amsgrad out"),
        (Adam, decouple, "optimizer Adam: leave decoupled_weight_decay out, or plan for AdamW"),
    ],
)
def test_a_change_that_only_another_step_can_follow_is_refused(
    make: Make, change: Change, message: str
) -> None:
    pair = Pair("towers", make)
    with pair.placed(1, None) as step:
        pair.both(step)
        before = state(pair.model)
        change(pair.optimizer)
        with pytest.raises(SituateError, match=message) as error:
            step(*pair.inputs)
    assert "\n" not in str(error.value)
    assert_same(state(pair.model), before)


def test_a_parameter_that_is_unfrozen_is_refused() -> None:
    model, *_ = MODELS["towers"]()
    model.head.bias.requires_grad_(False)
    groups = Groups(plain(model.parameters()), dict(model.named_parameters()), [0])
    groups.check()
    model.head.bias.requires_grad_(True)
    with pytest.raises(SituateError, match=f"parameter 'head.bias' was unfrozen {AGAIN}"):
        groups.check()


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (two_groups, "lr", 0.01),
        (two_groups, "weight_decay", 0.5),
        (two_groups, "maximize", True),
        (momentum, "momentum", 0.5),
        (momentum, "momentum", 0.0),
        (momentum, "nesterov", True),
        (Adam, "betas", (0.5, 0.75)),
        (Adam, "eps", 0.1),
    ],
)
def test_a_number_that_is_changed_is_followed(make: Make, name: str, value: object) -> None:
    pair = Pair("towers", make)
    with pair.placed(1, None) as step:
        pair.both(step)
        for optimizer in (pair.optimizer, pair.copied):
            option(name, value)(optimizer)
        pair.both(step)
    assert pair.steps == 2 * STEPS
    pair.assert_same()


def test_every_updated_parameter_has_its_group() -> None:
    model, *_ = MODELS["towers"]()
    named = dict(model.named_parameters())
    groups = Groups(two_groups(model.parameters()), named, range(len(named)))
    assert groups.of == {0: 0, **dict.fromkeys(range(1, len(named)), 1)}
    assert groups.trained == named
