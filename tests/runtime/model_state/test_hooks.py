"""A hook that PyTorch would call and a placed step does not is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn.modules import module as all_modules  # noqa: E402
from torch.optim import optimizer as all_optimizers  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.model_state.hooks import Hooks  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import assert_same, state  # noqa: E402

Register = Callable[[Any, Any], Any]


def plain(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.1)


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
        Hooks(pair.model, pair.optimizer, dict(pair.model.named_parameters())).check()
    finally:
        handle.remove()
