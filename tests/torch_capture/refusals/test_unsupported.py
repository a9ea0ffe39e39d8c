"""Steps and models that are refused, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (  # noqa: E402
    checkpoint_wrapper,
)
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard  # noqa: E402
from torch.distributed.tensor.parallel import (  # noqa: E402
    ColwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.refusals.unsupported import one_thread  # noqa: E402
from tests.readers.calling import X, mean, of  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


# A changed backward pass is refused, since capture derives its own.
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
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.half(), Tensor.float):
        out: Tensor = model.layer(x).tanh()
    return out


class Halved(torch.autograd.graph.saved_tensors_hooks):
    """Keeps half of the bytes."""

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.half(), Tensor.float)


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


# Scaled losses and threads are refused.
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
    results: list[Tensor] = []
    thread = Thread(target=lambda: results.append(model.layer(x)))
    thread.start()
    thread.join()
    return results[0]


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
    results: list[int] = []

    def starting() -> None:
        Thread(target=lambda: results.append(1)).start()
        results.append(2)

    go = Event()
    beside = Thread(target=lambda: (go.wait(), starting()))
    beside.start()
    with one_thread():
        go.set()
        beside.join()
    assert set(results) == {1, 2}


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
    """Stores its last output in an attribute, and reads it on request."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.layer, self.memory, self.reads = nn.Linear(3, 3), torch.zeros(3), reads

    def forward(self, x: Tensor) -> Tensor:
        output = self.layer(x + self.memory if self.reads else x)
        self.memory = output.detach().mean(0)
        out: Tensor = output.mean()
        return out


def test_a_tensor_that_is_kept_for_the_next_step_is_refused() -> None:
    with pytest.raises(SituateError, match=r"keeps in 'model.1.memory': .* buffer"):
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


POINTS = torch.linspace(-1, 1, 12).reshape(4, 3)


# Parameters may not be frozen for a part of the step.
def networks() -> nn.ModuleDict:
    torch.manual_seed(0)
    return nn.ModuleDict({"maker": nn.Linear(3, 3), "judge": nn.Linear(3, 1)})


def adversarial(model: Any, x: Tensor, judge: Callable[[Tensor], Tensor]) -> Tensor:
    """The judge's loss minus the maker's, with a judge that does not learn from it."""
    generated = model["maker"](x)
    learned: Tensor = model["judge"](generated.detach()).sigmoid() - model["judge"](x).sigmoid()
    return (learned - judge(generated).sigmoid()).mean()


def by_method(model: Any, x: Tensor) -> Tensor:
    model["judge"].requires_grad_(False)
    loss = adversarial(model, x, model["judge"])
    model["judge"].requires_grad_(True)
    return loss


def by_attribute(model: Any, x: Tensor) -> Tensor:
    model["judge"].weight.requires_grad = False
    return adversarial(model, x, model["judge"])


def by_call(model: Any, x: Tensor) -> Tensor:
    fixed = {name: p.detach() for name, p in model["judge"].named_parameters()}
    judge = partial(torch.func.functional_call, model["judge"], fixed)
    return adversarial(model, x, lambda generated: judge((generated,)))


def unchanged(model: Any, x: Tensor) -> Tensor:
    model.requires_grad_(True)
    return adversarial(model, x.clone().requires_grad_(False), model["judge"])


@pytest.mark.parametrize("loss", [by_method, by_attribute])
def test_it_is_refused_with_its_line(loss: Callable[[Any, Tensor], Tensor]) -> None:
    message = r"^net: .*test_unsupported\.py:\d+: the step freezes a parameter, .*: freeze it where"
    with pytest.raises(SituateError, match=message):
        capture(lambda: (networks(), POINTS, loss), name="net")


@pytest.mark.parametrize("loss", [by_call, unchanged])
def test_the_remedy_is_equal_to_the_last_bit(loss: Callable[[Any, Tensor], Tensor]) -> None:
    step = partial(placed_step, given=((POINTS,), loss))
    assert compare(networks(), (POINTS,), loss, sgd, step, threads=1).within(0.0)


def test_parameters_are_frozen_as_before_even_after_an_error() -> None:
    with pytest.raises(SituateError):
        capture(lambda: (networks(), POINTS, by_method), name="net")
    assert not nn.Linear(2, 2).requires_grad_(False).weight.requires_grad
    (weight := torch.ones(1, requires_grad=True)).requires_grad = False
    assert not weight.requires_grad


MIXED = {
    "layer": lambda model, x: model.layer(x.double()),
    "product": lambda model, x: model.layer(x) @ torch.ones(3, 3, dtype=torch.bfloat16),
    "batched": lambda model, x: torch.bmm(x[None], torch.ones(1, 3, 3).half())[0].float() + x,
    "convolution": lambda model, x: torch.conv1d(
        model.layer(x)[None], torch.ones(2, 4, 1).double()
    ),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("case", MIXED)
def test_it_is_refused_with_its_line_product(case, training):
    with pytest.raises(SituateError, match=r"test_unsupported\.py:\d+: a product of .*: cast one$"):
        of(MIXED[case], training)


def test_eager_pytorch_refuses_it_too():
    with pytest.raises(RuntimeError):
        torch.ones(3, 3) @ torch.ones(3, 3).double()


def test_the_remedy_helps_and_sums_may_be_mixed():
    assert of(lambda model, x: model.layer(x.double().float()) + torch.ones(3).double()).ops


# Models that are spread over processes are refused.
SPREAD_INPUT = torch.ones(2, 4)


@pytest.fixture
def process_group(tmp_path):
    """A process group of this process alone."""
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def layers():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


def sharded():
    fully_shard(model := layers(), mesh=init_device_mesh("cpu", (1,)))
    return model


def split():
    return parallelize_module(layers(), init_device_mesh("cpu", (1,)), {"0": ColwiseParallel()})


SPREAD = {
    "DistributedDataParallel": lambda: DistributedDataParallel(layers()),
    "FullyShardedDataParallel": lambda: FullyShardedDataParallel(
        layers(), device_id=torch.device("cpu")
    ),
    "FSDPSequential": sharded,
    "DTensor": split,
}


def mean_output(model, x):
    return model(x).mean()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("how", SPREAD)
@pytest.mark.usefixtures("process_group")
def test_it_is_refused_where_it_is_built_without_values(how, training):
    with pytest.raises(
        SituateError, match=rf"^net: .*(model|module '0') is spread .* by {how}, .*"
    ):
        capture(lambda: (SPREAD[how](), SPREAD_INPUT, mean_output), training=training, name="net")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", SPREAD)
@pytest.mark.usefixtures("process_group")
def test_it_is_refused_where_it_exists(how):
    with pytest.raises(SituateError, match=rf" is spread over processes by {how}, .* as it was be"):
        capture_program(SPREAD[how](), (SPREAD_INPUT,), mean_output)


@pytest.mark.usefixtures("process_group")
def test_so_is_a_part_by_its_name():
    with pytest.raises(SituateError, match="module '1' is spread over processes"):
        capture_program(
            nn.Sequential(layers(), DistributedDataParallel(layers())), (SPREAD_INPUT,), mean_output
        )


@pytest.mark.usefixtures("process_group")
def test_one_that_recomputes_is_of_one_process():
    assert capture_program(
        nn.Sequential(checkpoint_wrapper(layers())), (SPREAD_INPUT,), mean_output
    ).graph.ops


@pytest.mark.usefixtures("process_group")
def test_the_remedy_helps():
    model = DistributedDataParallel(layers())
    assert capture_program(model.module, (SPREAD_INPUT,), mean_output).graph.ops
