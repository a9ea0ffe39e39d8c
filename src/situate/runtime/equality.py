"""Comparison of the numbers of a placed step with those of the unplaced step."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from situate.data.slices import Slices
from situate.data.update_rule import Recipe
from situate.errors import SituateError
from situate.runtime.measure import arguments, finite_loss
from situate.runtime.memory import aligned_alike, misalignment
from situate.runtime.parts.loop import LoopOfParts
from situate.runtime.settings import use_threads as using
from situate.runtime.unplaced import UnplacedStep, result_tensors
from situate.torch_capture.patches.devices import devices_stand
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.patches.transformers_attention import masks_left_out, repeated
from situate.torch_capture.refusals.errors import explained
from situate.torch_capture.side_effects.environment import Environment

if TYPE_CHECKING:
    import torch

    from situate.runtime.programs.program import Program
    from situate.runtime.step import PlacedStep

COMPARED_STEPS = 3
"""Steps in a comparison; the second is the first to read updated parameters."""

FUSED_KERNELS = {
    "aten::_native_multi_head_attention": "torch.nn.MultiheadAttention",
    "aten::_transformer_encoder_layer_fwd": "torch.nn.TransformerEncoderLayer",
}
"""Fused inference kernels of modules that capture decomposes into several ops."""

MakeOptimizer = Callable[["list[torch.nn.Parameter]"], "torch.optim.Optimizer"]
MakeStep = Callable[["torch.nn.Module", "torch.optim.Optimizer | None"], "PlacedStep"]


@dataclass(frozen=True)
class UnplacedOptions:
    """Options of an unplaced step that a placed step is compared with.

    Attributes:
        clip: the largest norm of the gradients, as in the placed step.
        recipe: of mixed precision, as in the placed step.
        named_devices: the devices that the step names, if any; the unplaced step runs on the CPU.
        slices: of the batch; the unplaced step runs them one by one and accumulates gradients.
        program: the captured step in parts; the unplaced step is then the loop of these parts.
    """

    clip: float | None = None
    named_devices: NamedDevices | None = None
    slices: Slices | None = None
    program: Program | None = None
    recipe: Recipe | None = None


PLAIN = UnplacedOptions()
"""The options of a step without slices or clipping that names no devices."""


@dataclass(frozen=True)
class Equality:
    """Differences between a placed step and the unplaced one.

    The difference of two tensors is the largest |a - b| / max(1, |a|) of their elements, with a
    from the unplaced step. It is infinite if only one of both is a number.

    Attributes:
        returned: by step, the difference of the loss or of the model's results.
        state: by name, the difference of each parameter and buffer after the last step.
        changed: number of parameters and buffers that the steps changed.
        losses: of the unplaced steps; none for inference.
        decomposed: modules that capture decomposes, where eager PyTorch rounds differently.
        optimizer_state: by name, such as `left.weight exp_avg`, the difference of the optimiser's
            state, with |a| of a tensor's largest number.
        inputs: by number, the difference of each input that the steps overwrite; of other inputs
            only differences above 0.
        left_out: names of attributes and variables in which the unplaced steps keep tensors, but
            placed steps do not.
        copies: by name, such as `replica1/left.weight`, the largest difference of a further copy of
            a parameter or of its optimiser state.
    """

    returned: tuple[float, ...]
    state: dict[str, float]
    changed: int
    losses: tuple[float, ...]
    decomposed: tuple[str, ...] = ()
    optimizer_state: dict[str, float] = field(default_factory=dict)
    inputs: dict[int, float] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    copies: dict[str, float] = field(default_factory=dict)

    @property
    def loss_difference(self) -> float:
        """The largest difference in `returned`."""
        return max(self.returned)

    @property
    def worst_step(self) -> int:
        """The first step with the largest difference in `returned`; steps count from 1."""
        return self.returned.index(self.loss_difference) + 1

    @property
    def parameter_difference(self) -> float:
        """The largest difference of a parameter, a copy or a buffer; 0 where there is none."""
        return max((*self.state.values(), *self.copies.values()), default=0.0)

    @property
    def name(self) -> str:
        """The parameter, copy or buffer with the largest difference; empty if none differs."""
        return _largest_name(self.state | self.copies)

    @property
    def optimizer_difference(self) -> float:
        """The largest difference of the optimiser's state; 0 without state."""
        return max(self.optimizer_state.values(), default=0.0)

    @property
    def optimizer_part(self) -> str:
        """The part of the optimiser's state with the largest difference; empty if none differs."""
        return _largest_name(self.optimizer_state)

    @property
    def input_difference(self) -> float:
        """The largest difference of an input."""
        return max(self.inputs.values(), default=0.0)

    @property
    def worst_input(self) -> int | None:
        """The first input with the largest difference, counted from 0; None if none is
        overwritten."""
        return max(self.inputs, key=self.inputs.__getitem__, default=None)

    def within(self, tolerance: float) -> bool:
        """True if no difference exceeds the tolerance; 0 requires equal numbers."""
        differences = (
            self.loss_difference,
            self.parameter_difference,
            self.optimizer_difference,
            self.input_difference,
        )
        return max(differences) <= tolerance


def _largest_name(differences: Mapping[str, float]) -> str:
    worst = max(differences, key=differences.__getitem__, default="")
    return worst if differences.get(worst) else ""


def compare(
    model: torch.nn.Module,
    inputs: Any,
    loss: Callable[..., Any] | None,
    optimizer: MakeOptimizer | None,
    step: MakeStep,
    *,
    steps: int = COMPARED_STEPS,
    seed: int = 0,
    threads: int | None = None,
    name: str = "model",
    unplaced: UnplacedOptions = PLAIN,
) -> Equality:
    """Run unplaced and placed steps from the same state on the same inputs.

    The unplaced steps run first, on a copy. During the placed steps, only its parameters, buffers
    and optimiser state are held twice.

    Args:
        model: is trained by the placed step.
        inputs: a tuple or a dict by name; the placed step overwrites them as its model does.
        loss: as in `situate.capture`.
        optimizer: makes an optimiser of parameters; None compares inference.
        step: makes the placed step of a model and its optimiser; it is closed at the end.
        seed: of the random draws; equal for the placed step.
        threads: threads of the unplaced step's kernels; None leaves them unchanged.
        name: of the model in errors.
        unplaced: options of the unplaced step.

    Raises:
        NotFinite: the loss of an unplaced step is not finite.
        SituateError: the model cannot be copied, or a step fails.
    """
    if steps < 1:
        raise SituateError(f"steps: must be positive, got {steps}")
    with explained(name, "copying the model"):
        model_copy = copy.deepcopy(model)
        _align_copy(model_copy, model)
    environment = Environment(model=model_copy, loss=loss)
    with explained(name, "running the unplaced step"), using(threads):
        copy_optimizer = optimizer(list(model_copy.parameters())) if optimizer else None
        reference = _reference(model_copy, inputs, loss, copy_optimizer, seed, name, unplaced)
        with (
            (kernels := _kernel_recorder()),
            repeated() as heads,
            masks_left_out() as masks,
            cpu_device_names(unplaced.named_devices),
        ):
            expected = [reference() for _ in range(steps)]
    before = {} if copy_optimizer is None else _optimizer_state(model_copy, copy_optimizer)
    tensors, separate = reference.tensors, reference.separate
    left_out = tuple(environment.new_tensors())
    # Free the memory of the unplaced step before the placed one needs it.
    del copy_optimizer, reference, environment
    decomposed = (
        *decomposed_modules(model_copy, optimizer is not None),
        *_fused(kernels.names),
        *heads,
        *masks,
    )
    # A loop of the captured parts runs the same kernels as the placed step.
    if unplaced.program is not None:
        decomposed = ()
    losses = [finite_loss(results[0], k)[0] for k, results in enumerate(expected, 1) if optimizer]
    # `model` still has its initial state here: the placed steps run below.
    changed = sum(difference > 0 for difference in _state_differences(model_copy, model).values())
    with step(model, optimizer(list(model.parameters())) if optimizer else None) as placed_step:
        returned = [
            _largest_difference(results, result_tensors(placed_step(*arguments(inputs))))
            for results in expected
        ]
    after = {} if placed_step.optimizer is None else _optimizer_state(model, placed_step.optimizer)
    optimizer_state = {
        name: _optimizer_difference(before.get(name), after.get(name)) for name in before | after
    }
    state = _state_differences(model_copy, model)
    copies = {
        f"replica{number}/{name}": max(
            _copy_differences(name, _model_state(model_copy)[name], before, copy_parts)
        )
        for name, replicas in placed_step.copies.items()
        for number, copy_parts in enumerate(replicas, 1)
    }
    inputs_left = _input_differences(tensors, separate(inputs))
    return Equality(
        tuple(returned),
        state,
        changed,
        tuple(losses),
        decomposed,
        optimizer_state,
        inputs_left,
        left_out,
        copies,
    )


def _reference(
    model: torch.nn.Module,
    inputs: Any,
    loss: Callable[..., Any] | None,
    optimizer: torch.optim.Optimizer | None,
    seed: int,
    name: str,
    options: UnplacedOptions,
) -> UnplacedStep | LoopOfParts:
    """The steps that a placed step is compared with."""
    if options.program is not None:
        return LoopOfParts(options.program, model, inputs, optimizer, seed)
    return UnplacedStep(
        model,
        inputs,
        loss,
        optimizer,
        clip=options.clip,
        seed=seed,
        name=name,
        slices=options.slices,
        recipe=options.recipe,
    )


def _align_copy(model_copy: torch.nn.Module, model: torch.nn.Module) -> None:
    """Align the parameters and buffers of a copy like the model's: kernels' rounding depends on
    it."""
    for one, other in zip(
        _model_state(model_copy).values(), _model_state(model).values(), strict=True
    ):
        if misalignment(one) != misalignment(other):
            one.data = aligned_alike(other)


def cpu_device_names(named_devices: NamedDevices | None) -> contextlib.AbstractContextManager[None]:
    """A block for a step that names devices: within it PyTorch treats them as the CPU."""
    return devices_stand(named_devices) if named_devices else contextlib.nullcontext()


def decomposed_modules(model: torch.nn.Module, training: bool) -> list[str]:
    """Names of the model's modules that capture decomposes, where eager PyTorch rounds differently.
    For inference an LSTM stays whole."""
    from torch import nn

    kinds = (nn.LSTM, nn.GRU, nn.GRUCell) if training else (nn.GRU, nn.GRUCell)
    present = [kind for kind in kinds if any(isinstance(part, kind) for part in model.modules())]
    return [f"torch.nn.{kind.__name__}" for kind in present]


def _fused(names: Container[str]) -> list[str]:
    """The modules of the fused kernels among `names`."""
    return [module for kernel, module in FUSED_KERNELS.items() if kernel in names]


def difference(one: torch.Tensor, other: torch.Tensor, whole: bool = False) -> float:
    """The largest |one - other| / max(1, |one|) of two tensors of one shape; see `Equality`.

    Args:
        whole: divide by the largest finite |one| of the tensor instead.
    """
    import torch

    one, other = one.detach().cpu(), other.detach().cpu()
    if torch.equal(one, other):
        return 0.0
    # Doubles: the difference of two nearby floats is itself rounded.
    one, other = _as_doubles(one), _as_doubles(other)
    # Equal infinities and two that are no numbers differ by nothing, where a subtraction gives NaN.
    same = (one == other) | (one.isnan() & other.isnan())
    # A scalar for the whole tensor, or elementwise: both broadcast against `one`.
    size = one.abs().nan_to_num(0.0, 0.0).max() if whole else one.abs()
    off = (one - other).abs() / size.clamp(min=1.0)
    return float(off.nan_to_num(nan=math.inf, posinf=math.inf).masked_fill(same, 0.0).max())


def _kernel_recorder() -> Any:
    """A mode that records the names of the kernels run within it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.names: set[str] = set()

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.names.add(func._schema.name)
            return func(*args, **(kwargs or {}))

    return Recorder()


def _as_doubles(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).double()


def _largest_difference(ones: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    return max(difference(one, other) for one, other in zip(ones, others, strict=True))


def _state_differences(one: torch.nn.Module, other: torch.nn.Module) -> dict[str, float]:
    """The differences of the parameters and buffers of two copies of a model, by name."""
    ours, theirs = _model_state(one), _model_state(other)
    return {name: difference(ours[name], theirs[name]) for name in ours}


def _input_differences(
    ones: list[torch.Tensor], others: Iterable[torch.Tensor]
) -> dict[int, float]:
    """By number, the differences of the inputs that steps overwrote; `ones` were fresh copies."""
    pairs = enumerate(zip(ones, others, strict=True))
    # PyTorch counts the writes into a tensor in `_version`.
    differences = {k: (one._version > 0, difference(one, other)) for k, (one, other) in pairs}
    return {k: size for k, (was_written, size) in differences.items() if size or was_written}


def _model_state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _optimizer_state(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, torch.Tensor]:
    """The optimiser's state of the parameters that it has updated."""
    import torch

    states = ((path, optimizer.state.get(p, {})) for path, p in model.named_parameters())
    return {
        f"{path} {name}": value
        for path, values in states
        for name, value in values.items()
        if isinstance(value, torch.Tensor)
    }


def _copy_differences(
    name: str,
    value: torch.Tensor,
    optimizer_state: Mapping[str, torch.Tensor],
    parts: Mapping[str, torch.Tensor],
) -> Iterator[float]:
    """The differences of a parameter's copy, and of its optimiser state, from the unplaced
    step's."""
    for part, tensor in parts.items():
        if part == "value":
            yield difference(value, tensor)
        else:
            yield _optimizer_difference(optimizer_state.get(f"{name} {part}"), tensor)


def _optimizer_difference(one: torch.Tensor | None, other: torch.Tensor | None) -> float:
    """The difference of two optimisers' states; a missing one counts as zero.

    Relative to the whole tensor: small numbers, as in gradients, are remainders of large ones.
    """
    import torch

    if one is None:
        one, other = other, one
    assert one is not None
    return difference(one, torch.zeros_like(one) if other is None else other, whole=True)
