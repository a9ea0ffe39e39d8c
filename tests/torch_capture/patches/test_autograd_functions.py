"""A step with functions that bring their own gradient is captured with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.autograd.function import once_differentiable  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from tests.readers.calling import Calls, mean, of  # noqa: E402
from tests.runtime import steps  # noqa: E402


class Reversed(torch.autograd.Function):
    """Returns its input, and negates gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return -ctx.scale * gradient, None


class Straight(torch.autograd.Function):
    """Rounds, and passes gradients on."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class Both(torch.autograd.Function):
    """A product, a number and a sum, with gradients that are not theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, int, Tensor]:
        ctx.save_for_backward(x, y)
        return x * y * torch.tensor([1.0, 2.0, 3.0]), 3, x + y

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, product: Tensor, _: None, total: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return product * y + 7 * total, product * x


class Power(torch.autograd.Function):
    """In PyTorch's newer way of writing functions."""

    @staticmethod
    def forward(x: Tensor, exponent: int) -> Tensor:
        return x**exponent

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.saved_tensors[0], None


class Dropped(torch.autograd.Function):
    """Draws the numbers that it drops."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        mask = (torch.rand_like(x) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        out: Tensor = gradient * ctx.saved_tensors[0]
        return out


def reversed_(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Reversed.apply(model.layer(x), 0.5)
    return out.clone().add_(1)


def rounded(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Straight.apply(model.layer(x))
    return out * out


reverse = Reversed.apply


def by_another_name(model: Any, x: Tensor) -> Tensor:
    out: Tensor = reverse(model.layer(x), 0.5)
    return out.clone().add_(1)


def both(model: Any, x: Tensor) -> Tensor:
    product, number, total = Both.apply(model.layer(x), model.norm(x))
    out: Tensor = product * number + total
    return out


def of_a_parameter(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Power.apply(model.layer.weight, 3)
    return x @ out + model.layer(x)


def twice(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Dropped.apply(Dropped.apply(model.layer(x)))
    return out


def of_no_gradient(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Straight.apply(x)
    return model.layer(x) * out


@pytest.fixture
def _one_thread() -> Iterator[None]:
    """Sums are the same to the last bit only with as many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# Functions keep their own gradients in a captured step.
@pytest.mark.usefixtures("_one_thread")
@pytest.mark.parametrize(
    "function",
    [reversed_, by_another_name, rounded, both, of_a_parameter, twice, of_no_gradient],
)
def test_a_step_with_functions_computes_what_pytorch_does(
    function: Callable[[Any, Tensor], Tensor],
) -> None:
    torch.manual_seed(0)
    ours, inputs = Calls(function), (torch.randn(4, 3),)
    theirs = copy.deepcopy(ours)
    program = capture_program(ours, inputs, mean)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    own_optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    with steps.step_of(program, ours, own_optimizer, 1) as step:
        for number in (1, 2):
            expected = steps.train(theirs, inputs, mean, optimizer, number)
            assert torch.equal(step(*inputs), expected)
    steps.assert_same(steps.state(ours), steps.state(theirs))


class Outer(nn.Module):
    """Holds the module that calls a function."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rounding = nn.Linear(3, 3), Calls(rounded)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.rounding(self.first(x))
        return out


def test_what_a_function_computes_belongs_to_the_module_that_calls_it() -> None:
    program = capture_program(Outer(), (torch.randn(4, 3),), mean)
    assert "rounding/round" in {op.name for op in program.graph.ops}


def test_inference_is_captured_without_their_gradients() -> None:
    assert "round" in {op.name for op in of(rounded, training=False).ops}


# Effects of a function that capture cannot see are refused.
class Doubled(torch.autograd.Function):
    """Writes over its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


class WithModule(torch.autograd.Function):
    """Calls a module that it is given, whose parameters take no part in the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, module: nn.Module) -> Tensor:
        out: Tensor = module(x)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def doubled(model: Any, x: Tensor) -> Tensor:
    out: Tensor = Doubled.apply(model.layer(x))
    return out


def with_module(model: Any, x: Tensor) -> Tensor:
    out: Tensor = WithModule.apply(x, model.layer)
    return model.layer(x) + out


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            doubled,
            r"test_autograd_functions\.py:\d+: .* over its inputs \(ctx\.mark_dirty\): return a",
        ),
        (
            with_module,
            r".*functions\.py:\d+: .*Function 'WithModule' .* a Linear: give it tensors",
        ),
    ],
)
def test_what_a_function_does_unseen_is_refused(
    function: Callable[[Any, Tensor], Tensor], message: str
) -> None:
    with pytest.raises(SituateError, match=message):
        of(function)


def test_a_function_that_reads_a_tensor_of_nobodys_is_refused() -> None:
    table: list[Tensor] = []

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * (table or [torch.full((3,), 2.0)])[0]

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient

    def scaled(model: Any, x: Tensor) -> Tensor:
        out: Tensor = Scaled.apply(model.layer(x))
        return out

    assert of(scaled).ops
    table.append(torch.arange(3.0))
    with pytest.raises(SituateError, match=r"that neither the model holds"):
        of(scaled)


def test_functions_work_after_a_capture_as_before() -> None:
    assert of(rounded).ops
    with pytest.raises(SituateError):
        of(doubled)
    x = torch.tensor([0.4, 1.6], requires_grad=True)
    (Doubled.apply(x * 1) + Straight.apply(x)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]
    assert not hasattr(torch.ops.situate_functions, "f0")
