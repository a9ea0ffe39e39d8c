"""An optimiser's groups and hooks must stay as a placed step found them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch.nn.modules import module as all_modules
from torch.optim import optimizer as all_optimizers

from situate.errors import SituateError
from situate.runtime.model_state.optimizer_checks import (
    HookCheck,
    ParameterGroups,
)
from tests.runtime.models import MODELS
from tests.runtime.pairs import Pair
from tests.runtime.steps import STEPS, assert_same, state

torch = pytest.importorskip("torch")


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


# Groups of parameters.
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
    groups = ParameterGroups(plain(model.parameters()), dict(model.named_parameters()), [0])
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
    parameters_by_name = dict(model.named_parameters())
    groups = ParameterGroups(
        two_groups(model.parameters()), parameters_by_name, range(len(parameters_by_name))
    )
    assert groups.of == {0: 0, **dict.fromkeys(range(1, len(parameters_by_name)), 1)}
    assert groups.trained == parameters_by_name


torch = pytest.importorskip("torch")


Register = Callable[[Any, Any], Any]


def nothing(*_: object) -> None:
    """A hook that changes nothing."""


HOOKS: dict[str, Register] = {
    "the optimizer has a step pre-hook": lambda _, o: o.register_step_pre_hook(nothing),
    "the optimizer has a step post-hook": lambda _, o: o.register_step_post_hook(nothing),
    "torch.optim has a step pre-hook for all optimizers": lambda *_: (
        all_optimizers.register_optimizer_step_pre_hook(nothing)
    ),
    "torch.optim has a step post-hook for all optimizers": lambda *_: (
        all_optimizers.register_optimizer_step_post_hook(nothing)
    ),
    "parameter 'left.weight' has a hook on its gradient": lambda m, _: m.left.weight.register_hook(
        nothing
    ),
    "parameter 'head.bias' has a hook after its gradient": lambda m, _: (
        m.head.bias.register_post_accumulate_grad_hook(nothing)
    ),
    "module 'head' has a backward hook": lambda m, _: m.head.register_full_backward_hook(nothing),
    "the model has a backward pre-hook": lambda m, _: m.register_full_backward_pre_hook(nothing),
    "torch.nn has a backward hook for all modules": lambda *_: (
        all_modules.register_module_full_backward_hook(nothing)
    ),
    "torch.nn has a backward pre-hook for all modules": lambda *_: (
        all_modules.register_module_full_backward_pre_hook(nothing)
    ),
}


# Hooks of the caller and of PyTorch.
@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_refused_until_it_is_removed(name: str) -> None:
    pair = Pair("towers", plain)
    handle = HOOKS[name](pair.model, pair.optimizer)
    try:
        with pytest.raises(SituateError, match=f"^{name}, which a placed step does not call: rem"):
            pair.placed(1, None)
    finally:
        handle.remove()
    with pair.placed(1, None) as step:
        pair.both(step)


def test_a_hook_that_comes_later_is_refused_too() -> None:
    pair = Pair("towers", plain)
    with pair.placed(1, None) as step:
        pair.both(step)
        before = state(pair.model)
        pair.model.head.weight.register_hook(nothing)
        with pytest.raises(SituateError, match=r"parameter 'head\.weight' has a hook") as error:
            step(*pair.inputs)
    assert "\n" not in str(error.value)
    assert_same(state(pair.model), before)


def test_schedules_and_hooks_of_state_dicts_are_let_be() -> None:
    pair = Pair("towers", plain)
    pair.model.register_state_dict_pre_hook(nothing)
    pair.optimizer.register_state_dict_pre_hook(nothing)
    schedules = [
        torch.optim.lr_scheduler.StepLR(optimizer, 1) for optimizer in (pair.optimizer, pair.copied)
    ]
    with pair.placed(1, None) as step:
        for _ in range(2):
            pair.both(step)
            for schedule in schedules:
                schedule.step()
    pair.assert_same()


def test_hooks_of_pytorch_itself_are_let_be() -> None:
    """Its profiler registers one for all optimizers where a daemon listens to it."""
    from torch.profiler import _optimizer_post_hook

    pair = Pair("towers", plain)
    handle = all_optimizers.register_optimizer_step_post_hook(_optimizer_post_hook)
    try:
        HookCheck(pair.model, pair.optimizer, dict(pair.model.named_parameters())).check()
    finally:
        handle.remove()
