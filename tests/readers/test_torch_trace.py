"""What a capture of a step keeps, and what it refuses rather than lose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.graph import Graph  # noqa: E402
from situate.readers.torch import capture  # noqa: E402

X = (torch.ones(4, 3),)


def mean(model: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = model(x)
    return out.mean()


class Calls(nn.Module):
    """A layer, and what a function does with it."""

    def __init__(self, function: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(self, x)


class Straight(torch.autograd.Function):
    """Rounds, and passes gradients on."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def rounded(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Straight.apply(model.layer(x))
    return out


def hooked(model: Any, x: Tensor) -> Tensor:
    out: Tensor = model.layer(x)
    if out.requires_grad:
        out.register_hook(lambda gradient: gradient * 2)
    return out


def reentrant(model: Any, x: Tensor) -> Tensor:
    out: Tensor = checkpoint(model.layer, x, use_reentrant=True)
    return out


def of(function: Callable[[Any, Tensor], Tensor], training: bool = True) -> Graph:
    return capture(lambda: (Calls(function), X, mean), training=training, name="m")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rounded, r"test_torch_trace.py:\d+: capture does not see .*Function 'Straight': write"),
        (hooked, r"test_torch_trace.py:\d+: capture does not see a hook on a tensor's gradient"),
        (reentrant, r"torch.utils.checkpoint: call it with use_reentrant=False"),
    ],
)
def test_what_changes_the_backward_pass_unseen_is_refused(
    function: Callable[[Any, Tensor], Tensor], message: str
) -> None:
    with pytest.raises(SituateError, match=message):
        of(function)


@pytest.mark.parametrize("function", [rounded, hooked])
def test_where_there_is_no_backward_pass_it_may(function: Callable[[Any, Tensor], Tensor]) -> None:
    assert of(function, training=False).ops


def test_functions_and_hooks_work_after_a_capture_as_before() -> None:
    for function in (rounded, hooked):
        with pytest.raises(SituateError):
            of(function)
    x = torch.tensor([0.4, 1.6], requires_grad=True)
    (y := Straight.apply(x)).register_hook(lambda gradient: gradient * 3)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


class Criterion(nn.Module):
    """A loss that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(3, 1)

    def forward(self, out: Tensor, x: Tensor) -> Tensor:
        value: Tensor = self.scale(out * x).mean()
        return value


def test_a_loss_with_parameters_is_refused_where_it_would_be_trained() -> None:
    build = lambda: (nn.Linear(3, 3), (*X, *X), Criterion())  # noqa: E731
    with pytest.raises(SituateError, match=r"parameters of its own, such as 'scale.weight': make"):
        capture(build, name="m")
    assert capture(build, training=False, name="m:inference").ops


def test_a_tensor_from_elsewhere_that_takes_a_gradient_is_refused() -> None:
    weight = torch.ones(3, requires_grad=True)
    with pytest.raises(SituateError, match=r"a tensor of shape \(3,\) that takes a gradient"):
        of(lambda model, x: model.layer(x) * weight)


def test_a_tensor_of_the_builders_own_that_nothing_holds_is_refused() -> None:
    def build() -> Any:
        scale = nn.Parameter(torch.ones(3))
        return nn.Linear(3, 3), X, lambda model, x: (model(x) * scale).mean()

    with pytest.raises(SituateError, match="that neither the model holds nor the inputs have"):
        capture(build, name="m")


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_there_is_dropout_between_recurrent_layers(kind: type[nn.Module]) -> None:
    def build() -> Any:
        layers = kind(3, 3, 3, dropout=0.5)
        return layers, (torch.ones(5, 2, 3),), lambda model, x: model(x)[0].mean()

    forward = [op.kind for op in capture(build, name="m").ops if op.phase == "forward"]
    assert sum("bernoulli" in kind or kind == "aten.native_dropout" for kind in forward) == 2


def test_a_module_that_was_set_to_infer_infers_in_a_model_that_trains() -> None:
    def build() -> Any:
        model = Calls(lambda model, x: model.norm(model.layer(x)))  # type: ignore[operator]
        model.norm.eval()
        return model, X, mean

    frozen = {op.kind for op in capture(build, name="m").ops}
    trained = {op.kind for op in of(lambda model, x: model.norm(model.layer(x))).ops}
    assert frozen != trained
    assert "update.copy" not in frozen


def test_a_model_that_infers_is_set_to_train_for_a_training_step() -> None:
    def build() -> Any:
        return Calls(lambda model, x: model.norm(model.layer(x))).eval(), X, mean  # type: ignore[operator]

    trained = of(lambda model, x: model.norm(model.layer(x)))
    assert [op.kind for op in capture(build, name="m").ops] == [op.kind for op in trained.ops]


@torch.library.custom_op("situate_tests::halves", mutates_args=())
def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:2].clone(), x[2:].clone()


@halves.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x[:2]), torch.empty_like(x[2:])


def test_an_op_of_the_users_own_may_have_several_outputs() -> None:
    graph = of(lambda model, x: torch.mul(*halves(model.layer(x))), training=False)
    (op,) = (op.name for op in graph.ops if op.kind == "situate_tests.halves")
    assert [f"{op}:0", f"{op}:1"] == [t.name for t in graph.tensors if t.name.startswith(op)]


def test_a_trained_parameter_that_the_forward_pass_changes_is_refused() -> None:
    def normed(model: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            model.layer.bias.mul_(0.5)
        out: Tensor = model.layer(x)
        return out

    with pytest.raises(SituateError, match=r"changes parameter 'layer.bias', which is trained"):
        of(normed)
