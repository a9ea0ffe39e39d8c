"""A step that capture would get wrong is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.refusals.unsupported import one_thread  # noqa: E402
from tests.readers.calling import X, mean, of  # noqa: E402


def hooked(model: Any, x: Tensor) -> Tensor:
    out: Tensor = model.layer(x)
    if out.requires_grad:
        out.register_hook(lambda gradient: gradient * 2)
    return out


def reentrant(model: Any, x: Tensor) -> Tensor:
    out: Tensor = checkpoint(model.layer, x, use_reentrant=True)
    return out


def penalised(model: Any, x: Tensor) -> Tensor:
    out: Tensor = model.layer(x)
    out.sum().backward(retain_graph=True)
    return out


def packed(model: Any, x: Tensor) -> Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept.half(), Tensor.float):
        out: Tensor = model.layer(x).tanh()
    return out


class Halved(torch.autograd.graph.saved_tensors_hooks):
    """Keeps half of the bytes."""

    def __init__(self) -> None:
        super().__init__(lambda kept: kept.half(), Tensor.float)


def packed_by_its_own(model: Any, x: Tensor) -> Tensor:
    with Halved():
        out: Tensor = model.layer(x).tanh()
    return out


def kept_elsewhere(model: Any, x: Tensor) -> Tensor:
    with torch.autograd.graph.save_on_cpu():
        out: Tensor = model.layer(x).tanh()
    return out


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (packed, r"test_unsupported\.py:\d+: capture does not see hooks on what is kept"),
        (
            packed_by_its_own,
            r"test_unsupported\.py:\d+: .*\(torch\.autograd\.graph\.saved_tensors_hooks\)",
        ),
        (hooked, r"test_unsupported\.py:\d+: capture does not see a hook on a tensor's gradient"),
        (
            penalised,
            r"test_unsupported\.py:\d+: the step calls backward\(\) itself: return the loss",
        ),
        (reentrant, r"torch.utils.checkpoint: call it with use_reentrant=False"),
    ],
)
def test_what_changes_the_backward_pass_unseen_is_refused(
    function: Callable[[Any, Tensor], Tensor], message: str
) -> None:
    with pytest.raises(SituateError, match=message):
        of(function)


def recomputed(model: Any, x: Tensor) -> Tensor:
    out: Tensor = checkpoint(model.layer, x, use_reentrant=False)
    return out


@pytest.mark.parametrize("function", [kept_elsewhere, recomputed])
def test_what_pytorch_keeps_as_it_is_may_be_kept_anyhow(
    function: Callable[[Any, Tensor], Tensor],
) -> None:
    assert of(function).ops


@pytest.mark.parametrize("function", [hooked, packed])
def test_where_there_is_no_backward_pass_it_may(function: Callable[[Any, Tensor], Tensor]) -> None:
    assert of(function, training=False).ops


def test_hooks_work_after_a_capture_as_before() -> None:
    for function in (hooked, packed):
        with pytest.raises(SituateError):
            of(function)
    x = torch.tensor([0.4, 1.6], requires_grad=True)
    (y := x * 1).register_hook(lambda gradient: gradient * 3)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def scaled(scaler: torch.amp.GradScaler) -> Any:
    """A step whose loss a GradScaler scales."""

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        out: Tensor = scaler.scale(mean(model, x))
        return out

    return nn.Linear(3, 1), X, loss


def test_a_loss_that_a_scaler_scales_is_refused() -> None:
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(SituateError, match=r"test_unsupported\.py:\d+: the step scales its loss"):
        capture(lambda: scaled(scaler), name="m")
    assert scaler.scale(torch.ones(())) == 2.0**16


def test_a_scaler_that_is_disabled_scales_nothing() -> None:
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    assert capture(lambda: scaled(scaler), name="m").ops


def in_a_thread(model: Any, x: Tensor) -> Tensor:
    found: list[Tensor] = []
    thread = Thread(target=lambda: found.append(model.layer(x)))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("training", [True, False])
def test_a_thread_that_a_step_starts_is_refused(training: bool) -> None:
    with pytest.raises(SituateError, match=r"test_unsupported\.py:\d+: the step computes in a"):
        of(in_a_thread, training)


def test_a_daemon_may_be_started() -> None:
    def watched(model: Any, x: Tensor) -> Tensor:
        Thread(target=lambda: None, daemon=True).start()
        out: Tensor = model.layer(x)
        return out

    assert of(watched).ops


def test_a_thread_of_another_one_may_start_meanwhile() -> None:
    begun: list[int] = []

    def starting() -> None:
        Thread(target=lambda: begun.append(1)).start()
        begun.append(2)

    go = Event()
    beside = Thread(target=lambda: (go.wait(), starting()))
    beside.start()
    with one_thread():
        go.set()
        beside.join()
    assert set(begun) == {1, 2}


class Criterion(nn.Module):
    """A loss that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(3, 1)

    def forward(self, out: Tensor, x: Tensor) -> Tensor:
        value: Tensor = self.scale(out * x).mean()
        return value


def test_sparse_gradients_are_refused_by_the_name_of_their_module() -> None:
    def build() -> Any:
        model = nn.Sequential(nn.Embedding(5, 3, sparse=True))
        return model, (torch.zeros(4, dtype=torch.int64),), mean

    with pytest.raises(SituateError, match=r"0: makes a sparse tensor, .*: leave sparse=True out"):
        capture(build, name="m")


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


def test_a_trained_parameter_that_the_forward_pass_changes_is_refused() -> None:
    def normed(model: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            model.layer.bias.mul_(0.5)
        out: Tensor = model.layer(x)
        return out

    with pytest.raises(SituateError, match=r"changes parameter 'layer.bias', which is trained"):
        of(normed)


class Remembering(nn.Module):
    """Keeps what it said last in an attribute, and reads it if it is asked to."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.layer, self.said, self.reads = nn.Linear(3, 3), torch.zeros(3), reads

    def forward(self, x: Tensor) -> Tensor:
        said = self.layer(x + self.said if self.reads else x)
        self.said = said.detach().mean(0)
        out: Tensor = said.mean()
        return out


def test_a_tensor_that_is_kept_for_the_next_step_is_refused() -> None:
    with pytest.raises(SituateError, match=r"keeps in 'model.1.said': .* buffer"):
        capture(lambda: (nn.Sequential(nn.ReLU(), Remembering(True)), X, None))


def test_one_that_no_step_reads_may_be_kept() -> None:
    assert capture(lambda: (nn.Sequential(nn.ReLU(), Remembering(False)), X, None)).ops


GENERATOR = torch.Generator()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        lambda model, x: model.layer(x) * torch.rand(3, generator=GENERATOR),
        lambda model, x: model.layer(x) * torch.rand(3, generator=torch.Generator()),
        lambda model, x: model.layer(x)[torch.randperm(4, generator=GENERATOR)],
    ],
)
def test_a_generator_of_the_steps_own_is_refused(
    function: Callable[[Any, Tensor], Tensor], training: bool
) -> None:
    with pytest.raises(SituateError, match=r"torch.Generator of its own, .*: leave generator= out"):
        of(function, training)


def averaging(**how: Any) -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=None, **how)), X, mean


def test_averages_over_all_steps_are_refused_where_they_are_taken() -> None:
    with pytest.raises(SituateError) as error:
        capture(averaging, name="m")
    assert str(error.value) == (
        "m: 1: BatchNorm1d with momentum=None averages over all steps so far, whose count capture "
        "does not know: give it a momentum, as 0.1"
    )
    assert capture(averaging, training=False)
    assert capture(lambda: averaging(track_running_stats=False))
