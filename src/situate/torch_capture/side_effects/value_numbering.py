"""Value numbers of a step that runs on fake tensors: values with equal numbers are computed alike.

This is global value numbering (Alpern, Wegman and Zadeck 1988) of the contents of storages. A view
has the number of its storage, and a write gives the storage a new number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.torch_capture.refusals.remedies import Unsupported
from situate.torch_capture.side_effects.storages import (
    content,
    digest,
    geometry,
    is_fake,
    key,
    leaves,
    storages,
    tensors_in,
)

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

GENERATOR = (
    "the step draws from a torch.Generator of its own, which is not captured: leave generator= "
    "out, and give a seed to what runs the step"
)
STRANGER = (
    "the step writes over a tensor that is neither its input nor a parameter or buffer of the "
    "model: register it as a buffer of the model, or write into a clone"
)


@dataclass
class StorageValue:
    """The value in a storage.

    Attributes:
        number: of the value.
        depends: names of the state that it is computed from; None if inputs or randomness are
            involved.
        stranger: it existed before the steps, and is neither input nor state.
        real: it has values, which others may change.
        is_overwritten: this run has written over it.
        storages: by key; alive, so that no other storage gets the same key.
    """

    number: str
    depends: frozenset[str] | None
    stranger: bool = False
    real: bool = False
    is_overwritten: bool = False
    storages: dict[int, Any] = field(default_factory=dict)


@dataclass
class Run:
    """The value numbers of one run of the step.

    Attributes:
        numbers: of all computed values.
        draws: the number of random draws so far.
        look: called with the number of each operator that makes tensors.
    """

    numbers: set[str] = field(default_factory=set)
    draws: int = 0
    look: Callable[[str], None] | None = None


class Values:
    """The value numbers of storages, over several runs of a step.

    Args:
        mode: of the fake tensors.
    """

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self._values: dict[int, StorageValue] = {}
        self.run = Run()

    def begin(
        self,
        inputs: Sequence[torch.Tensor],
        state: Mapping[str, torch.Tensor],
        changed: Collection[str],
        run: Run,
    ) -> None:
        """Begin another run with these inputs.

        Args:
            changed: names of the state that differs in every step. Values that earlier runs
                computed from it, from inputs or from randomness get other numbers than this run's.
        """
        self.run = run
        # The contents of real tensors may have changed since the last run.
        self._values = {key: value for key, value in self._values.items() if not value.real}
        # A value is listed once for each of its storages, and renamed once.
        for value in {id(value): value for value in self._values.values()}.values():
            if value.depends is None or not value.depends.isdisjoint(changed):
                value.number, value.depends = digest("earlier", value.number), None
        # Tied tensors have several names; reversed, the first name stays.
        for name, tensor in reversed([*state.items()]):
            self._hold(tensor, digest("state", name), frozenset((name,)))
        for k, tensor in enumerate(inputs):
            self._hold(tensor, digest("input", k), None)

    def of(self, tensor: torch.Tensor) -> str:
        """The number of the part of its storage that a tensor shows."""
        return digest(self.value_of(tensor).number, *geometry(tensor))

    def value_of(self, tensor: torch.Tensor) -> StorageValue:
        """The value in the storage of a tensor."""
        values = (self._values.get(key(storage)) for storage in storages(tensor))
        value = next(filter(None, values), None)
        if value is None:
            real = not is_fake(tensor)
            number = content(tensor) if real else digest("given", len(self._values))
            value = StorageValue(number, frozenset(), stranger=True, real=real)
        self._store(tensor, value)
        return value

    def is_written(self, tensor: torch.Tensor) -> bool:
        """True if this run has written over the storage of a tensor."""
        return self.value_of(tensor).is_overwritten

    def varies(self, tensor: torch.Tensor, changed: Collection[str]) -> bool:
        """True if a tensor is computed from inputs, randomness, or state of these names."""
        depends = self.value_of(tensor).depends
        return depends is None or not depends.isdisjoint(changed)

    def run_operator(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an operator, and number its results and writes.

        Raises:
            Unsupported: it draws from a generator of its own, or writes over a stranger.
        """
        import torch
        from torch.utils._pytree import tree_map_only

        if getattr(func, "_opname", "") != "lift_fresh":  # which keeps a real tensor's values
            args, kwargs = tree_map_only(torch.Tensor, self._faked, (args, kwargs))
        arguments = list(leaves((args, kwargs)))
        tensors = [leaf for leaf in arguments if isinstance(leaf, torch.Tensor)]
        if any(isinstance(leaf, torch.Generator) for leaf in arguments):
            raise Unsupported(GENERATOR)
        overwritten = list(tensors_written_by(func, args, kwargs))
        if any(self.value_of(tensor).stranger for tensor in overwritten):
            raise Unsupported(STRANGER)
        number, depends = self._number(func, arguments, tensors)
        input_keys = {key(storage) for tensor in tensors for storage in storages(tensor)}
        result = func(*args, **kwargs)
        results = list(tensors_in(result))
        # PyTorch catches errors of operators without tensor results, such as queries of sizes.
        if results and self.run.look is not None:
            self.run.look(number)
        self.run.numbers.add(number)
        for k, tensor in enumerate(results):
            # A view keeps the number of its base's storage.
            if input_keys.isdisjoint(map(key, storages(tensor))):
                self._hold(tensor, digest(number, k), depends)
        for k, tensor in enumerate(overwritten):
            value = self.value_of(tensor)
            # A write may cover a part of the storage alone, so the old number enters the new one.
            value.number = digest(number, "written", k, value.number, *geometry(tensor))
            value.depends, value.is_overwritten = _joined((value.depends, depends)), True
        return result

    def _faked(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake tensor of a real one, always the same, so that views of it are recognised."""
        if is_fake(tensor):
            return tensor
        value, fake = self.value_of(tensor), self._mode.from_tensor(tensor)
        self._store(fake, value)
        return fake

    def _number(
        self, func: Any, arguments: Sequence[Any], tensors: Sequence[torch.Tensor]
    ) -> tuple[str, frozenset[str] | None]:
        import torch

        depends = _joined(self.value_of(tensor).depends for tensor in tensors)
        draw = ""
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            # The k-th draw has the same number in every run, and two draws of a run never do.
            draw, depends = f"draw {self.run.draws}", None
            self.run.draws += 1
        parts = (self.of(g) if isinstance(g, torch.Tensor) else _text(g) for g in arguments)
        number = digest(func, draw, *parts)
        return number, depends

    def _hold(self, tensor: torch.Tensor, number: str, depends: frozenset[str] | None) -> None:
        self._store(tensor, StorageValue(number, depends))

    def _store(self, tensor: torch.Tensor, value: StorageValue) -> None:
        for storage in storages(tensor):
            value.storages[key(storage)] = storage
            self._values[key(storage)] = value


def numbered(values: Values) -> Any:
    """A mode in which `Values.run_operator` runs all operators."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Numbered(TorchDispatchMode):  # type: ignore[no-untyped-call]
        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return values.run_operator(func, args, kwargs or {})

    return Numbered()  # type: ignore[no-untyped-call]


def _joined(depends: Any) -> frozenset[str] | None:
    names: frozenset[str] = frozenset()
    for part in depends:
        if part is None:
            return None
        names |= part
    return names


def tensors_written_by(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[torch.Tensor]:
    """The tensors that an operator writes over, with the running averages of a batch norm that
    trains, which its schema omits."""
    if getattr(func, "_opname", "") == "native_batch_norm" and args[5]:
        yield from tensors_in(args[3:5])
    for k, name in _places_written(func):
        yield from tensors_in(args[k] if k < len(args) else kwargs.get(name))


@cache
def _places_written(func: Any) -> tuple[tuple[int, str], ...]:
    schema = getattr(func, "_schema", None)
    arguments = enumerate(schema.arguments) if schema is not None else ()
    return tuple((k, a.name) for k, a in arguments if a.alias_info and a.alias_info.is_write)


def _text(value: Any) -> str:
    """The text of an argument that is no tensor. All functions of one type have the same text."""
    return type(value).__name__ if callable(value) else repr(value)
