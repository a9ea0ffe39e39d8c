"""A user's model, its inputs and its loss, on fake tensors: shapes without values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture.meta_device import to_cpu
from situate.torch_capture.patches.constant_values import constants_known
from situate.torch_capture.patches.devices import devices_here, devices_stand
from situate.torch_capture.patches.distributed import check_of_one_process, no_replicas
from situate.torch_capture.patches.module_conversion import modules_convertible
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.refusals.errors import explained
from situate.torch_capture.sequences import replaced, sequences
from situate.torch_capture.side_effects.invariants import contents_kept
from situate.torch_capture.trees import flatten, names
from situate.torch_capture.values.drawn_examples import Known, Values, examples_drawn
from situate.torch_capture.values.followed import copied, may_follow
from situate.torch_capture.values.taken import Example

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

Build = Callable[[], Any]

CALLED = "it is called without arguments"
RETURNS = "must return (model, inputs, loss): a torch.nn.Module, a tuple of tensors and a function"


@dataclass(frozen=True)
class Built:
    """A model, the tensors among its inputs, and what to do with them.

    Attributes:
        tensors: of the inputs, in order.
        names: of these, such as `0` or `mask`.
        call: from the model and the tensors to the step's result.
        separate: the tensors of inputs of the same structure.
        mode: of the fake tensors.
        strangers: names of parameters that the loss has.
        loss: as the user gave it.
        named: the devices that have been named.
        originals: of a model that exists, by identity of a fake tensor what it is a copy of.
        examples: by number, the tensors of integers and booleans whose values are known.
        sequences: by name, inputs without tensors in them that may be cut along the batch.
        call_with: `call` with other sequences of some names.
    """

    model: torch.nn.Module
    tensors: tuple[torch.Tensor, ...]
    names: tuple[str, ...]
    call: Callable[..., Any]
    separate: Callable[[object], tuple[torch.Tensor, ...]]
    mode: FakeTensorMode
    strangers: tuple[str, ...]
    named: NamedDevices = field(default_factory=NamedDevices)
    loss: object = None
    originals: Mapping[int, torch.Tensor] = field(default_factory=dict)
    examples: Mapping[int, Example] = field(default_factory=dict)
    sequences: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    call_with: Callable[[Mapping[str, Sequence[Any]]], Callable[..., Any]] | None = None


def built(build: Build, name: str) -> Built:
    """The result of `build` on fake tensors; built with real ones first where it needs values.

    Raises:
        SituateError: `build` fails, or does not return a model, its inputs and a loss.
    """
    mode, named = _mode(), NamedDevices()
    with explained(name, "building the model", called=CALLED), devices_stand(named):
        try:
            with (
                mode,
                constants_known(),
                modules_convertible(mode),
                devices_here(),
                no_replicas(),
                examples_drawn() as values,
            ):
                return _on_cpu(replace(_checked(build(), mode, values), named=named))
        except Exception as error:
            if not _needs_values(error):
                raise
            real = _checked(build(), mode)
            model, tensors = _fake(real.model, mode), _fakes(real.tensors, mode)
            return _on_cpu(replace(real, model=model, tensors=tensors, named=named))


def really_built(build: Build, name: str, named: NamedDevices) -> tuple[Any, Any, Any]:
    """The model, inputs and loss that `build` returns; devices that it names are noted.

    Raises:
        SituateError: `build` fails, or returns no three things.
    """
    with explained(name, "building the model", called=CALLED), devices_stand(named):
        return _three(build())


def _on_cpu(what: Built) -> Built:
    """The same, and what was built on the device `meta` is on the CPU."""
    moved = to_cpu(what.model, what.mode)
    return replace(what, tensors=tuple(map(moved, what.tensors)))


def from_real(
    model: object, inputs: object, loss: object, name: str, named: NamedDevices | None = None
) -> Built:
    """The same of a model that exists, by way of a copy on fake tensors; `named` are the devices
    that were named where it was built.

    Raises:
        SituateError: not a model, its inputs and a loss; or a model that cannot be copied.
    """
    mode = _mode()
    with explained(name, "copying the model onto fake tensors"):
        real = _checked((model, inputs, loss), mode)
        fake = {id(tensor): mode.from_tensor(tensor) for tensor in _held(real.model)}
        originals = {id(fake[id(tensor)]): tensor for tensor in _held(real.model)}
        return replace(
            real,
            model=copy.deepcopy(real.model, dict[int, Any](fake)),
            tensors=_fakes(real.tensors, mode),
            named=real.named if named is None else named,
            originals=originals,
        )


def _mode() -> FakeTensorMode:
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    mode.__deepcopy__ = lambda memo: mode  # type: ignore[attr-defined]
    return mode


def _fakes(tensors: tuple[torch.Tensor, ...], mode: FakeTensorMode) -> tuple[torch.Tensor, ...]:
    from torch._subclasses.fake_tensor import FakeTensor

    return tuple(t if isinstance(t, FakeTensor) else mode.from_tensor(t) for t in tensors)


def _distinct(tensors: tuple[torch.Tensor, ...], mode: FakeTensorMode) -> Iterator[torch.Tensor]:
    """The tensors; one that comes again is another input, for which calls may give another."""
    import torch

    seen = set[int]()
    for tensor in tensors:
        if id(tensor) in seen:
            with mode:
                twin = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            yield twin.requires_grad_(tensor.requires_grad)
        else:
            seen.add(id(tensor))
            yield tensor


def _held(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Every tensor that the model's modules hold, also those in their attributes."""
    import torch
    from torch.utils._pytree import tree_leaves

    for module in model.modules():
        for store in (module._parameters, module._buffers, vars(module)):
            for leaf in (leaf for value in store.values() for leaf in tree_leaves(value)):
                if isinstance(leaf, torch.Tensor):
                    yield leaf


def _needs_values(error: Exception) -> bool:
    """True if a model cannot be built on fake tensors: it looks at values, or loads them."""
    types = ("DataDependentOutputException", "DynamicOutputShapeException")
    words = ("numpy", "storage", "FakeTensor", "data pointer")
    return type(error).__name__ in types or any(word in str(error) for word in words)


def _checked(returned: object, mode: FakeTensorMode, values: Values = Known) -> Built:
    import torch

    model, inputs, loss = _three(returned)
    if not isinstance(model, torch.nn.Module):
        raise SituateError(f"{RETURNS}; the model is {described(model)}")
    _check_eager(model)
    check_of_one_process(model)
    if loss is not None and not callable(loss):
        raise SituateError(f"{RETURNS}; the loss is {described(loss)}")
    inputs = _arguments(inputs)
    tensors, _ = _separated(inputs)
    if not tensors:
        _check_one_batch(inputs)
        raise SituateError(
            f"{RETURNS}; the inputs are {described(inputs)} without a tensor in it, or in tuples, "
            "lists and dicts in it: dataclasses and other objects are not looked into"
        )
    result = _result(loss)

    owner = loss if isinstance(loss, torch.nn.Module) else torch.nn.Module()
    strangers = tuple(name for name, p in owner.named_parameters() if p.requires_grad)
    named = _names(inputs)
    examples = dict(_examples(named, tensors, values))
    tensors, called = tuple(_distinct(tensors, mode)), tuple(name.strip("'") for name in named)
    return Built(
        model,
        tensors,
        called,
        _caller(inputs, result),
        _separator(inputs),
        mode,
        strangers,
        loss=loss,
        examples=examples,
        sequences=sequences(inputs),
        call_with=lambda changes: _caller(replaced(inputs, changes), result),
    )


def _caller(inputs: Any, result: Callable[..., Any]) -> Callable[..., Any]:
    """The function from a model and tensors in the place of those of the inputs to the result."""
    _, fill = _separated(inputs)

    def call(model: torch.nn.Module, *values: torch.Tensor) -> Any:
        arguments = fill(values)
        with contents_kept(arguments):
            if isinstance(arguments, dict):
                return result(model, **arguments)
            return result(model, *arguments)

    return call


def _check_one_batch(inputs: object) -> None:
    """Raise for inputs that hand out one batch after the other."""
    import torch

    for leaf in flatten(inputs)[0]:
        if isinstance(leaf, (torch.utils.data.DataLoader, Iterator)):
            raise SituateError(
                f"{RETURNS}; the inputs are a {type(leaf).__name__}: give one batch: "
                "next(iter(loader))"
            )


def _names(inputs: object) -> list[str]:
    """Names of the tensors among the inputs."""
    import torch

    leaves = zip(names(inputs), flatten(inputs)[0], strict=True)
    return [name for name, leaf in leaves if isinstance(leaf, torch.Tensor)]


def _examples(
    named: Sequence[str], tensors: Sequence[torch.Tensor], values: Values
) -> Iterator[tuple[int, Example]]:
    """By number, the tensors among the inputs whose values a step may look at."""
    for number, (name, tensor) in enumerate(zip(named, tensors, strict=True)):
        exact = not (tensor.is_floating_point() or tensor.is_complex())
        known = values(tensor) if exact else Known(None)
        if known.values is not None and may_follow(known.values):
            yield number, Example(name, copied(known.values), drawn=known.drawn)


def _check_eager(model: torch.nn.Module) -> None:
    """Raise where TorchScript made the model, or a module of it: nothing in there is captured."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            which = f"module {name!r}" if name else "the model"
            raise SituateError(
                f"{which} was compiled by torch.jit (script, trace or freeze), and what is "
                "captured is a model of plain modules: return the nn.Module that it was made of"
            )


def _arguments(inputs: object) -> Any:
    """A dict of arguments by name, else a tuple of them."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _separator(inputs: object) -> Callable[[object], tuple[torch.Tensor, ...]]:
    """A function that takes the tensors out of inputs that are structured alike."""
    import torch

    leaves, expected = flatten(inputs)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def separate(given: object) -> tuple[torch.Tensor, ...]:
        for meant in _meanings(given, inputs):
            found, structure = flatten(meant)
            if structure == expected and all(isinstance(found[i], torch.Tensor) for i in places):
                _check_numbers(found, leaves)
                return tuple(found[i] for i in places)
        raise SituateError(
            "the inputs are not structured like those of the captured step: they are "
            f"{_outlined(given)}, and were {_outlined(inputs)}"
        )

    return separate


def _check_numbers(given: Sequence[object], captured: Sequence[object]) -> None:
    """Raises SituateError for an input that is no tensor and not what it was."""
    import torch

    for now, then in zip(given, captured, strict=True):
        if not isinstance(then, torch.Tensor) and now is not then and now != then:
            raise SituateError(
                f"an input is {now!r} and was {then!r} when the step was captured, which holds for "
                "that value alone: capture and plan for this one, or make it a tensor"
            )


def _meanings(given: object, like: object) -> Iterator[object]:
    """A lone dict is all arguments by name, or the one argument; their order does not matter."""
    meanings = [_arguments(given)]
    if isinstance(given, Mapping):
        meanings.append((given,))
    elif isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], Mapping):
        meanings.append(dict(given[0]))
    return (_ordered(meant, like) for meant in meanings)


def _ordered(given: Any, like: Any) -> Any:
    """The same, with the entries of dicts in the order of others that have the same keys."""
    if type(given) is not type(like):
        return given
    if type(given) is dict and given.keys() == like.keys():
        return {key: _ordered(given[key], like[key]) for key in like}
    if type(given) in (tuple, list) and len(given) == len(like):
        return type(given)(map(_ordered, given, like))
    return given


def _outlined(inputs: object) -> str:
    """Such as `(tensor, {'mask': tensor})`."""
    import torch

    if isinstance(inputs, torch.Tensor):
        return "tensor"
    if isinstance(inputs, Mapping):
        return f"{{{', '.join(f'{key!r}: {_outlined(value)}' for key, value in inputs.items())}}}"
    if isinstance(inputs, (tuple, list)):
        return f"({', '.join(map(_outlined, inputs))})"
    return type(inputs).__name__


def _separated(
    inputs: Any,
) -> tuple[tuple[torch.Tensor, ...], Callable[[tuple[torch.Tensor, ...]], Any]]:
    """The tensors in nested inputs, and how to put others in their place."""
    import torch

    leaves, structure = flatten(inputs)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def fill(values: tuple[torch.Tensor, ...]) -> Any:
        filled = dict(zip(places, values, strict=True))
        return structure.unflatten([filled.get(i, leaf) for i, leaf in enumerate(leaves)])

    return tuple(leaves[i] for i in places), fill


def _result(loss: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function that computes a step's result from the model and its inputs."""
    import torch

    if loss is None:
        return lambda model, *inputs, **named: model(*inputs, **named)
    if isinstance(loss, torch.nn.Module):
        return lambda model, *inputs: loss(model(*inputs[:-1]), inputs[-1])
    return loss


def set_mode(model: torch.nn.Module, training: bool) -> None:
    """Let a model train or infer. One that trains already is left as it is: its owner may have set
    some of its modules to infer, such as a batch-norm that is to keep its statistics."""
    if not (training and model.training):
        model.train(training)


def _three(returned: object) -> tuple[Any, Any, Any]:
    """Model, inputs and loss.

    Raises:
        SituateError: something else.
    """
    if not (isinstance(returned, (tuple, list)) and len(returned) == 3):
        raise SituateError(f"{RETURNS}; got {described(returned)}")
    model, inputs, loss = returned
    return model, inputs, loss


def described(value: object) -> str:
    """The type of a value, and its length if it has one."""
    entries = f" of {len(value)}" if isinstance(value, (tuple, list, dict)) else ""
    return f"{type(value).__name__}{entries}"


def _fake(model: torch.nn.Module, mode: FakeTensorMode) -> torch.nn.Module:
    """The model with every parameter and buffer replaced by a fake one; ties are kept."""
    for module in model.modules():
        for store in (module._parameters, module._buffers):
            for key, value in store.items():
                if value is not None:
                    store[key] = mode.from_tensor(value)  # type: ignore[assignment]
    return model
