"""Regions of autocast, without gradients and in inference mode."""

from __future__ import annotations

from functools import cache, partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.patches.regions import inference_without_gradients  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402
from tests.torch_capture.patches.mixed_precision import cast, compare_steps, loss, step  # noqa: E402


# Ops in a region keep their modules, and the placed step equals the eager one.
def inside(model, x):
    with cast():
        return model.plain(x)


def by_layer(model, x):
    for layer in model.layers:
        with cast():
            x = layer(x)
    return model.head(x)


def partly_disabled(model, x):
    with cast():
        x = model.layers[0](x)
        with cast(enabled=False):
            x = model.layers[1](x.float())
        return model.head(model.layers[2](x))


def frozen(model, x):
    with torch.no_grad():
        x = model.layers[0](x)
    return model.head(model.layers[2](model.layers[1](x)))


def frozen_in_autocast(model, x):
    with cast():
        with torch.no_grad():
            y = model.layers[0](x)
        return model.head(model.layers[2](model.layers[1](model.layers[0](x) + y)))


def unfrozen_in_frozen(model, x):
    with cast():
        with torch.no_grad():
            x = model.layers[0](x)
            with torch.enable_grad():
                x = model.layers[1](x)
        return model.head(model.layers[2](x))


def switched(model, x):
    torch.set_grad_enabled(False)
    x = model.layers[0](x)
    torch.set_grad_enabled(True)
    return model.head(model.layers[2](model.layers[1](x)))


def switched_across_the_end_of_autocast(model, x):
    with cast():
        x = model.layers[0](x)
        torch.set_grad_enabled(False)
        x = model.layers[1](x)
    x = model.layers[2](x)
    torch.set_grad_enabled(True)
    return model.head(x)


STEPS = [
    inside,
    by_layer,
    partly_disabled,
    frozen,
    frozen_in_autocast,
    unfrozen_in_frozen,
    switched,
    switched_across_the_end_of_autocast,
]


@cache
def modules(forward=None, training=True):
    graph = capture(lambda: step(forward), training=training, name="m")
    return {op.module for op in graph.ops if op.phase == "forward"}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("forward", STEPS)
def test_the_modules_are_those_of_the_step_without_regions(forward, training):
    assert modules(forward, training) == modules(training=training)


@pytest.mark.parametrize("forward", STEPS)
def test_the_placed_step_is_equal_to_the_last_bit(forward):
    assert compare_steps(step(forward)).within(0.0)


def test_autocast_around_the_call_of_the_model_keeps_the_modules():
    def around(model, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = model(x)
        return out.float().square().mean()

    graph = capture(lambda: (*step()[:2], around), name="m")
    assert {op.module for op in graph.ops if op.phase == "forward"} == modules()


def test_hooks_may_begin_and_end_a_region():
    model, inputs, of_step = step()
    region = cast()

    def begin(*_):
        region.__enter__()

    def end(*_):
        region.__exit__(None, None, None)

    model.layers[0].register_forward_pre_hook(begin)
    model.layers[0].register_forward_hook(end)
    assert compare_steps((model, inputs, of_step)).within(0.0)


def test_modules_in_a_region_can_run_again():
    graph = capture(lambda: step(inside), name="m", recompute=["layers.*"])
    assert {op.module for op in graph.ops if op.recompute} >= {"layers.0.norm", "layers.2.norm"}


def test_a_frozen_part_in_autocast_takes_no_gradient():
    def frozen_alone(model, x):
        with cast():
            with torch.no_grad():
                x = model.layers[0](x)
            return model.head(model.layers[2](model.layers[1](x)))

    graph = capture(lambda: step(frozen_alone), name="m")
    updated = {op.module for op in graph.ops if op.phase == "update"}
    assert "layers.1.up" in updated
    assert "layers.0.up" not in updated


def test_autocast_ends_with_a_capture_that_fails():
    def failing(model, x):
        with cast():
            x = model.layers[0](x)
            return model.head(x[x > 0][:8].reshape(1, 8))

    with pytest.raises(SituateError):
        capture(lambda: step(failing), name="m")
    assert not torch.is_autocast_enabled("cpu")
    assert torch.autocast_increment_nesting() == 1
    torch.autocast_decrement_nesting()


def test_regions_of_a_model_that_infers_keep_it_without_gradients():
    model = nn.Sequential(nn.Linear(3, 3))

    def half_frozen(model, x):
        with torch.no_grad():
            x = model(x)
        return model(x)

    graph = capture(lambda: (model, (torch.ones(2, 3),), half_frozen), training=False, name="m")
    assert {op.phase for op in graph.ops} == {"forward"}
    assert loss(model, torch.ones(2, 3)).requires_grad


# Inference mode inside a step is a region without gradients.
X = torch.linspace(-1, 1, 12).reshape(4, 3)


def inference_inside(model, x):
    with torch.inference_mode():
        features = model[0](x)
    return model[1](features.clone()).square().mean()


@torch.inference_mode()
def features(layer, x):
    return layer(x)


def decorated(model, x):
    return model[1](features(model[0], x).clone()).square().mean()


def switched_off(model, x):
    with torch.inference_mode(False):
        return model(x).square().mean()


def layers():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))


@pytest.mark.parametrize("loss", [inference_inside, decorated, switched_off])
def test_a_placed_step_is_equal_to_the_last_bit(loss):
    step = partial(placed_step, given=((X,), loss))
    assert compare(layers(), (X,), loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("loss", [inference_inside, decorated])
def test_it_has_neither_a_backward_pass_nor_updates(loss):
    graph = capture(lambda: (layers(), X, loss), name="net")
    trained = {op.module for op in graph.ops if op.phase == "update"}
    assert trained == {"1"}
    assert "0" not in {op.module for op in graph.ops if op.phase == "backward"}


def test_a_step_that_all_is_in_it_trains_nothing():
    loss = torch.inference_mode()(lambda model, x: model(x).mean())
    with pytest.raises(SituateError, match=r"^net: .*the loss depends on no parameter that takes"):
        capture(lambda: (layers(), X, loss), name="net")


def test_inference_mode_is_as_before():
    with inference_without_gradients():
        pass
    with torch.inference_mode():
        assert torch.ones(1).is_inference()
