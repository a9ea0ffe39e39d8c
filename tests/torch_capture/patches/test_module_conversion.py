"""A model may be cast and moved where it is built, and is left as it is in the step."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.build import build_fake  # noqa: E402

FILLS = {
    "ones": lambda: torch.ones(4),
    "zeros": lambda: torch.zeros(4),
    "full": lambda: torch.full((4,), 2.0),
    "arange": lambda: torch.arange(4.0),
    "linspace": lambda: torch.linspace(0, 1, 4),
    "eye": lambda: torch.eye(4)[0],
    "like": lambda: torch.ones_like(torch.empty(4)),
    "new": lambda: torch.empty(4).new_zeros(4),
    "numbers": lambda: torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "computed": lambda: 1 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8)),
}
CASTS = {
    "to": lambda model: model.to(torch.bfloat16),
    "method": lambda model: model.bfloat16(),
    "twice": lambda model: model.half().to(torch.bfloat16),
    "same": lambda model: model.float(),
    "double": lambda model: model.double(),
    "part": lambda model: model.apply(lambda part: part.half()),
    "layout": lambda model: model.to(memory_format=torch.channels_last),
    "empty": lambda model: model.to_empty(device="cpu"),
    "shared": lambda model: model.share_memory(),
    "copied": lambda model: copy.deepcopy(model).bfloat16(),
    "scaled": lambda model: model._apply(lambda tensor: tensor * 2),
    "again": lambda model: model.bfloat16().float().bfloat16(),
}


class Norm(nn.Module):
    """Has a parameter and a buffer that are filled with numbers."""

    def __init__(self, fill):
        super().__init__()
        self.weight = nn.Parameter(fill())
        self.register_buffer("shift", fill())

    def forward(self, x):
        return x * self.weight + self.shift


def step(model):
    like = next(model.parameters())
    return model, torch.ones(2, 4, dtype=like.dtype), lambda model, x: model(x).mean()


# A model on fake tensors can be cast and moved where it is built.
@pytest.mark.parametrize("fill", FILLS)
def test_a_parameter_of_numbers_is_cast(fill):
    graph = capture(lambda: step(nn.Sequential(Norm(FILLS[fill])).to(torch.bfloat16)))
    assert sum(op.persistent for op in graph.ops) == 2 * 4 * 2


@pytest.mark.parametrize("cast", CASTS)
def test_it_is_cast_in_every_way(cast):
    assert capture(lambda: step(CASTS[cast](nn.Sequential(Norm(FILLS["ones"]))))).ops


def test_a_cast_model_has_the_dtype_and_is_the_same_module():
    def build():
        model = Norm(FILLS["ones"])
        weight, view = model.weight, model.weight[:2]
        model.double()
        assert model.weight is weight
        assert (weight.dtype, view.dtype) == (torch.float64, torch.float32)
        return step(model)

    model = build_fake(build, "m").model
    assert model.weight.requires_grad
    assert model.weight.dtype is model.shift.dtype is torch.float64


def test_tied_parameters_stay_tied():
    def build():
        model = nn.Sequential(Norm(FILLS["ones"]), Norm(FILLS["ones"]))
        model[1].weight = model[0].weight
        return step(model.half())

    model = build_fake(build, "m").model
    assert model[0].weight is model[1].weight
    assert model[0].weight.dtype is torch.float16


def test_a_gradient_is_cast_along():
    def build():
        model = Norm(FILLS["ones"])
        model.weight.sum().backward()
        assert model.half().weight.grad.dtype is torch.float16
        return step(model)

    assert capture(build).ops


def test_values_that_are_known_of_a_parameter_are_known_of_a_cast_one():
    def build():
        model = Norm(FILLS["arange"]).double()
        assert model.weight.sum().item() == 6
        with torch.no_grad():
            model.weight.add_(torch.rand(4))
        assert built_without_values(model)
        return step(model)

    assert capture(build).ops


def built_without_values(model):
    return model.weight.constant is None


@pytest.mark.parametrize("norm", [parametrizations.weight_norm, parametrizations.spectral_norm])
def test_what_is_parametrised_is_cast(norm):
    def build():
        layer = nn.Linear(4, 4)
        nn.init.ones_(layer.weight)
        return step(nn.Sequential(norm(layer), Norm(FILLS["ones"])).double())

    assert capture(build).ops


def test_a_model_on_meta_gets_memory_of_its_own():
    def build():
        with torch.device("meta"):
            model = nn.Sequential(Norm(FILLS["ones"]))
        return step(model.to_empty(device="cpu").bfloat16())

    assert build_fake(build, "m").model[0].weight.dtype is torch.bfloat16


# A cast within the step is refused unless it changes nothing.
class Router(nn.Module):
    """Casts a layer in every step."""

    def __init__(self, dtype):
        super().__init__()
        self.layer, self.dtype = nn.Linear(4, 4), dtype

    def forward(self, x):
        self.layer = self.layer.to(self.dtype)
        return self.layer(x.to(self.dtype)).float()


@pytest.mark.parametrize("training", [True, False])
def test_a_cast_in_the_step_that_changes_nothing_is_none(training):
    routed = capture(lambda: step(Router(torch.float32)), training=training)
    plain = capture(lambda: step(nn.Linear(4, 4)), training=training)
    assert [op.kind for op in routed.ops] == [op.kind for op in plain.ops]


def moved(model, x):
    model.register_buffer("scale", torch.ones(4))
    model.double()
    return model(x).mean()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "build",
    [
        lambda: step(Router(torch.float64)),
        lambda: (nn.Linear(4, 4), torch.ones(2, 4), moved),
        lambda: (nn.LSTM(4, 4), torch.ones(2, 4), lambda model, x: model.half()(x)[0].mean()),
        lambda: (
            nn.Linear(4, 4),
            torch.ones(2, 4),
            lambda model, x: model.to_empty(device="cpu")(x).mean(),
        ),
    ],
)
def test_one_that_changes_something_is_refused_with_its_line(build, training):
    message = (
        r"test_module_conversion\.py:\d+: the step casts or moves a module, (weight|weight_ih_l0) "
    )
    with pytest.raises(SituateError, match=message):
        capture(build, training=training)


def test_the_remedies_help():
    def build():
        model = Router(torch.float64)
        model.layer.double()
        return model, torch.ones(2, 4), lambda model, x: model(x).mean()

    assert "float64" in {op.dtype for op in capture(build).ops}
