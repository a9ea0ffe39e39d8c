"""A user's model, its inputs and its loss on fake tensors: shapes without values."""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from situate.data.update_rule import Recipe
from situate.errors import SituateError
from situate.torch_capture import trees
from situate.torch_capture.fake_tensors import (
    distinct,
    fake_tensors,
    make_fake,
    needs_values,
    new_mode,
    tensors_of,
    to_cpu,
)
from situate.torch_capture.patches.constant_values import constants_known
from situate.torch_capture.patches.devices import devices_here, devices_stand
from situate.torch_capture.patches.module_conversion import modules_convertible
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.errors import CALL, CRITERION_CALL, apply_criterion, explained
from situate.torch_capture.refusals.lines import format_line, user_frame_of
from situate.torch_capture.refusals.unsupported import check_of_one_process, no_replicas
from situate.torch_capture.side_effects.runs import contents_kept
from situate.torch_capture.values.drawn_examples import FindValues, KnownValues, random_examples
from situate.torch_capture.values.followed import copied, may_follow
from situate.torch_capture.values.required import Example

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

Build = Callable[[], Any]

SIGNATURE = "it is called without arguments"
RETURNS = "must return (model, inputs, loss): a torch.nn.Module, a tuple of tensors and a function"


@dataclass(frozen=True)
class FakeStep:
    """A model on fake tensors, the tensors among its inputs, and the step that they take.

    Attributes:
        model: on fake tensors.
        tensors: the tensors among the inputs, in order.
        names: of these tensors, such as `0` or `mask`.
        call: from the model and the tensors to the step's result.
        separate: takes the tensors out of inputs of the same structure.
        mode: of the fake tensors.
        loss_parameters: names of parameters that the loss has.
        devices: that the program has named.
        loss: as the user gave it.
        criterion: for a loss module, its class and the line that made it; else empty.
        originals: by id of a fake tensor, the real tensor that it copies; empty for a model that
            was built on fake tensors.
        examples: by input number, the tensors of integers and booleans whose values are known.
        sequences: by name, inputs without tensors in them that may be cut along the batch.
        call_with: `call` with other sequences of some names.
        recipe: under which the model computes in bfloat16, if it does.
        masters: names of the parameters and buffers that the step holds in float32.
    """

    model: torch.nn.Module
    tensors: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    call: Callable[..., Any]
    separate: Callable[[object], tuple[torch.Tensor, ...]]
    mode: FakeTensorMode
    loss_parameters: tuple[str, ...]
    devices: NamedDevices = field(default_factory=NamedDevices)
    loss: object = None
    criterion: str = ""
    originals: Mapping[int, torch.Tensor] = field(default_factory=dict)
    examples: Mapping[int, Example] = field(default_factory=dict)
    sequences: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    call_with: Callable[[Mapping[str, Sequence[Any]]], Callable[..., Any]] | None = None
    recipe: Recipe | None = None
    masters: frozenset[str] = frozenset()

    @property
    def signature(self) -> str:
        """The call of the loss, for an error about its arguments."""
        return CRITERION_CALL if self.criterion else CALL


def build_fake(build: Build, name: str) -> FakeStep:
    """The result of `build` on fake tensors. A model that needs values is built on real ones first.

    Raises:
        SituateError: `build` fails, or does not return a model, its inputs and a loss.
    """
    mode, devices = new_mode(), NamedDevices()
    with (
        explained(name, "building the model", SIGNATURE),
        devices_stand(devices),
        criteria_located(),
    ):
        try:
            with (
                mode,
                constants_known(),
                modules_convertible(mode),
                devices_here(),
                no_replicas(),
                random_examples() as find_values,
            ):
                return _on_cpu(replace(_checked(build(), mode, find_values), devices=devices))
        # A second attempt with real tensors, because some models load weights or compute sizes from
        # values.
        except Exception as error:
            if not needs_values(error):
                raise
            real = _checked(build(), mode)
            model, tensors = make_fake(real.model, mode), fake_tensors(real.tensors, mode)
            return _on_cpu(replace(real, model=model, tensors=tensors, devices=devices))


def build_real(build: Build, name: str, devices: NamedDevices) -> tuple[Any, Any, Any]:
    """The model, inputs and loss that `build` returns. Devices that it names go into `devices`.

    Raises:
        SituateError: `build` fails, or does not return three values.
    """
    with explained(name, "building the model", SIGNATURE), devices_stand(devices):
        return _check_triple(build())


def _on_cpu(fake: FakeStep) -> FakeStep:
    """The same step, with everything on the device `meta` moved to the CPU."""
    move = to_cpu(fake.model, fake.mode)
    return replace(fake, tensors=tuple(map(move, fake.tensors)))


def from_real(
    model: object, inputs: object, loss: object, name: str, devices: NamedDevices | None = None
) -> FakeStep:
    """A copy of a real model, its inputs and its loss on fake tensors.

    Args:
        devices: that the program named while it built the model.

    Raises:
        SituateError: not a model, its inputs and a loss; or a model that cannot be copied.
    """
    mode = new_mode()
    with explained(name, "copying the model onto fake tensors"):
        real = _checked((model, inputs, loss), mode)
        fake = {id(tensor): mode.from_tensor(tensor) for tensor in tensors_of(real.model)}
        originals = {id(fake[id(tensor)]): tensor for tensor in tensors_of(real.model)}
        return replace(
            real,
            # `deepcopy` finds the fake tensors in its memo, so that it allocates no memory.
            model=copy.deepcopy(real.model, dict[int, Any](fake)),
            tensors=fake_tensors(real.tensors, mode),
            devices=real.devices if devices is None else devices,
            originals=originals,
        )


def _checked(
    returned: object, mode: FakeTensorMode, find_values: FindValues = KnownValues
) -> FakeStep:
    import torch

    model, inputs, loss = _check_triple(returned)
    if not isinstance(model, torch.nn.Module):
        raise SituateError(f"{RETURNS}; the model is {describe_type(model)}")
    _check_eager(model)
    check_of_one_process(model)
    if loss is not None and not callable(loss):
        raise SituateError(f"{RETURNS}; the loss is {describe_type(loss)}")
    inputs = trees.arguments(inputs)
    tensors, fill = trees.split_tensors(inputs)
    if not tensors:
        _check_one_batch(inputs)
        raise SituateError(
            f"{RETURNS}; the inputs are {describe_type(inputs)} without a tensor in it, or in "
            "tuples, lists and dicts in it: dataclasses and other objects are not looked into"
        )
    result = _result(loss)
    # A function owns no parameters, as an empty module does.
    owner = loss if isinstance(loss, torch.nn.Module) else torch.nn.Module()
    names = trees.tensor_names(inputs)

    def call_with(changes: Mapping[str, Sequence[Any]]) -> Callable[..., Any]:
        _, fill_changed = trees.split_tensors(trees.replace_sequences(inputs, changes))
        return _caller(fill_changed, result)

    return FakeStep(
        model,
        tuple(distinct(tensors, mode)),
        # `keystr` quotes the keys of keyword arguments.
        tuple(name.strip("'") for name in names),
        _caller(fill, result),
        trees.separator(inputs),
        mode,
        tuple(name for name, p in owner.named_parameters() if p.requires_grad),
        loss=loss,
        criterion=_criterion(loss),
        examples=dict(_examples(names, tensors, find_values)),
        sequences=trees.sequences(inputs),
        call_with=call_with,
    )


def _caller(fill: Callable[..., Any], result: Callable[..., Any]) -> Callable[..., Any]:
    """The function from a model and the tensors of its inputs to the result.

    Args:
        fill: from tensors to the inputs that hold them.
        result: from a model and inputs to the result.
    """

    def call(model: torch.nn.Module, *values: torch.Tensor) -> Any:
        inputs = fill(values)
        with contents_kept(inputs):
            if isinstance(inputs, dict):
                return result(model, **inputs)
            return result(model, *inputs)

    return call


def _check_one_batch(inputs: object) -> None:
    """Raises SituateError for inputs that yield one batch after the other."""
    import torch

    for leaf in trees.flatten(inputs)[0]:
        if isinstance(leaf, (torch.utils.data.DataLoader, Iterator)):
            raise SituateError(
                f"{RETURNS}; the inputs are a {type(leaf).__name__}: give one batch: "
                "next(iter(loader))"
            )


def _examples(
    names: Sequence[str], tensors: Sequence[torch.Tensor], find_values: FindValues
) -> Iterator[tuple[int, Example]]:
    """By number, the tensors among the inputs whose values a step may read."""
    for number, (name, tensor) in enumerate(zip(names, tensors, strict=True)):
        is_exact = not (tensor.is_floating_point() or tensor.is_complex())
        values, is_random = find_values(tensor) if is_exact else KnownValues(None)
        if values is not None and may_follow(values):
            yield number, Example(name, copied(values), is_random=is_random)


def _check_eager(model: torch.nn.Module) -> None:
    """Raises SituateError for a model that TorchScript compiled, or a module of one."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            which = f"module {name!r}" if name else "the model"
            raise SituateError(
                f"{which} was compiled by torch.jit (script, trace or freeze), and what is "
                "captured is a model of plain modules: return the nn.Module that it was made of"
            )


def _result(loss: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function that computes a step's result from the model and its inputs."""
    import torch

    if loss is None:
        return lambda model, *args, **kwargs: model(*args, **kwargs)
    if isinstance(loss, torch.nn.Module):
        return lambda model, *inputs: apply_criterion(loss, model(*inputs[:-1]), inputs[-1])
    return loss


CRITERION_LINE = "_situate_line"
"""The attribute of a loss module of PyTorch that holds the line that made it."""


@contextlib.contextmanager
def criteria_located() -> Iterator[None]:
    """A block in which loss modules of PyTorch keep the user's line that made them. situate
    calls them, so their ops would have no line of the user's."""
    # All loss modules of PyTorch derive from `_Loss`, whose constructor runs while the user's line
    # is on the stack.
    from torch.nn.modules.loss import _Loss

    make = _Loss.__init__

    def init(module: Any, *args: Any, **options: Any) -> None:
        make(module, *args, **options)
        if frame := user_frame_of(traceback.extract_stack()):
            setattr(module, CRITERION_LINE, format_line(frame.filename, frame.lineno))

    with replaced(_Loss, "__init__", init):
        yield


def _criterion(loss: object) -> str:
    """The class of a loss module and the line that made it; empty for a loss function."""
    import torch

    if not isinstance(loss, torch.nn.Module):
        return ""
    line = getattr(loss, CRITERION_LINE, "").removesuffix(": ")
    return ", ".join(filter(None, (type(loss).__name__, line)))


def set_mode(model: torch.nn.Module, training: bool) -> None:
    """Let a model train or infer.

    A model that trains already stays as it is. Its owner may have set some modules to infer, such
    as a batch norm that keeps its statistics.
    """
    if not (training and model.training):
        model.train(training)


def _check_triple(returned: object) -> tuple[Any, Any, Any]:
    """Model, inputs and loss.

    Raises:
        SituateError: `returned` is no triple.
    """
    if not (isinstance(returned, (tuple, list)) and len(returned) == 3):
        raise SituateError(f"{RETURNS}; got {describe_type(returned)}")
    model, inputs, loss = returned
    return model, inputs, loss


def describe_type(value: object) -> str:
    """The type of a value, and its length if it has one."""
    entries = f" of {len(value)}" if isinstance(value, (tuple, list, dict)) else ""
    return f"{type(value).__name__}{entries}"
