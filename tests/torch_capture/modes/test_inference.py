"""A part in inference mode within a training step takes no gradient."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.modes.inference import inference_without_gradients  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def inside(model, x):
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


@pytest.mark.parametrize("loss", [inside, decorated, switched_off])
def test_a_placed_step_is_equal_to_the_last_bit(loss):
    step = partial(placed_step, given=((X,), loss))
    assert compare(layers(), (X,), loss, sgd, step, threads=1).within(0.0)


@pytest.mark.parametrize("loss", [inside, decorated])
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
