"""Values of some fake tensors, followed through the operators of a program."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.constant_values import (
    EMPTY,
    FILLING,
    MAX_KEPT_NUMBERS,
    MAX_KEPT_TOTAL,
)
from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.side_effects.value_numbering import tensors_written_by

if TYPE_CHECKING:
    import torch

VALUES = "_situate_values"
"""The attribute of a fake tensor that holds a real one with its values."""

UNFOLLOWED = EMPTY | {"resize_", "resize_as_", "set_"}
"""Operators after which a tensor holds uninitialised memory, or lies elsewhere."""


class Followed:
    """Fake tensors whose values are known, and the numbers of their origins.

    A view's values are a view of its base's values, so a write into one shows in the other. A
    tensor loses its values when something unknown is written to it.
    """

    def __init__(self) -> None:
        self._made_of: dict[int, set[int]] = {}
        self._memory: dict[int, Any] = {}  # held, so that no other has the same key
        self._lost: set[int] = set()
        self._overwritten: set[int] = set()
        self._assigned: dict[int, torch.Tensor] = {}
        self._budget = MAX_KEPT_TOTAL
        self.depth = 0

    def assign(self, tensor: torch.Tensor, values: torch.Tensor, number: int) -> None:
        """Give a fake tensor the values of another, in memory of its own."""
        self._assigned[number] = real = copied(values)
        self._store(tensor, real, {number})

    def of(self, tensor: object) -> torch.Tensor | None:
        """The values of a tensor, which must not be changed; None if they are not known."""
        real: torch.Tensor | None = getattr(tensor, VALUES, None)
        if real is None or real.shape != tensor.shape or real.dtype != tensor.dtype:  # type: ignore[attr-defined]
            return None
        key = _key(real)
        return real if key in self._made_of and key not in self._lost else None

    def is_written(self, number: int) -> bool:
        """True if the values that were assigned for this number have been overwritten."""
        original = self._assigned.get(number)
        return original is not None and _key(original) in self._overwritten

    def is_assigned(self, tensor: object, number: int) -> bool:
        """True for a whole tensor that values of this number were assigned to, if nothing has
        overwritten it."""
        real, original = self.of(tensor), self._assigned.get(number)
        if real is None or original is None or _key(real) in self._overwritten:
            return False
        alike = real.stride() == original.stride() and (real.shape, real.dtype) == (
            original.shape,
            original.dtype,
        )
        return alike and real.data_ptr() == original.data_ptr()

    def made_of(self, real: torch.Tensor) -> set[int]:
        """The numbers of the origins of values."""
        return self._made_of[_key(real)]

    def made_of_all(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> set[int]:
        """The numbers of the origins of an operator's arguments."""
        reals = (self.of(tensor) for tensor in _tensors((args, kwargs)))
        return {number for real in reals if real is not None for number in self.made_of(real)}

    def arguments(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """An operator's arguments with values in place of fake tensors; None if a value is unknown,
        none was followed, or the operator gives another result every time."""
        if not self._made_of or not _is_followed(func):
            return None
        from torch.utils._pytree import tree_map_only

        tensors = _tensors((args, kwargs))
        if all(self.of(tensor) is None for tensor in tensors):
            return None
        if not all(map(self._is_known, tensors)) or _has_symbols((args, kwargs)):
            return None
        for tensor in tensors_written_by(func, args, kwargs):
            self._adopt(tensor)
        return tree_map_only(_fake_kind(), self._real, (tuple(args), dict(kwargs)))

    def _is_known(self, tensor: Any) -> bool:
        """True for a fake tensor with values. Real tensors are unknown, because they may be
        parameters."""
        return self.of(tensor) is not None or getattr(tensor, "constant", None) is not None

    def _adopt(self, tensor: Any) -> None:
        """Follow a constant that is about to be written, and all that share its memory, because
        PyTorch will forget their values."""
        from torch.multiprocessing.reductions import StorageWeakRef
        from torch.utils._mode_utils import no_dispatch

        if self.of(tensor) is None:
            # A fake tensor keeps small constants of a program as real tensors. PyTorch drops all
            # constants of a memory once an operator writes into it.
            memory = tensor.constant.untyped_storage()
            sharing = tensor.fake_mode.fake_tensor_converter.constant_storage_mapping
            with no_dispatch():
                copy = memory.clone()
            for alias in [ref() for ref in sharing.get(StorageWeakRef(memory), ())]:  # type: ignore[no-untyped-call]
                if alias is not None and alias.constant is not None:
                    self._store(alias, _view(alias.constant, copy), set())

    def _real(self, tensor: Any) -> torch.Tensor:
        from torch.utils._mode_utils import no_dispatch

        real = self.of(tensor)
        if real is None:
            with no_dispatch():
                real = tensor.constant.clone()
        return real

    def computed(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of an operator on the values of its arguments; None if they are unknown."""
        from torch.utils._mode_utils import no_dispatch

        reals = self.arguments(func, args, kwargs)
        if reals is None:
            return None
        # Outside of all modes, of which the fake one would return a tensor without values.
        with no_dispatch():
            return func(*reals[0], **reals[1])

    def fakes(self, mode: Any, real: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result, with fake tensors for real ones."""
        import torch
        from torch.utils._pytree import tree_map_only

        numbers = self.made_of_all(args, kwargs)

        def fake(value: torch.Tensor) -> torch.Tensor:
            with mode:
                result = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
            self._store(result, value, numbers)
            return result

        return tree_map_only(torch.Tensor, fake, real)

    def follow(self, func: Any, result: Any, reals: Any, numbers: set[int], args: Any) -> None:
        """Record the values of an operator's results and writes."""
        from torch.utils._mode_utils import no_dispatch
        from torch.utils._pytree import tree_leaves

        results, overwritten = tree_leaves(result), list(tensors_written_by(func, *args))
        sizes = [tensor.numel() for tensor in _tensors(result)]
        # Real values of large tensors would take the memory and time that fake ones save.
        if sum(sizes) > self._budget or max(sizes, default=0) > MAX_KEPT_NUMBERS:
            self.lose(func, *args)
            return
        self._budget -= sum(sizes)
        with no_dispatch():
            real = func(*reals[0], **reals[1])
        places = list(tensors_written_by(func, *reals))
        self._overwritten.update(map(_key, places))
        for fake, value in zip(
            (*results, *overwritten), (*tree_leaves(real), *places), strict=False
        ):
            if isinstance(fake, _fake_kind()) and getattr(fake, "constant", None) is None:
                self._store(fake, value, numbers)

    def lose(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Forget the values of the tensors that an operator writes."""
        if not self._memory:
            return
        for tensor in tensors_written_by(func, args, kwargs):
            real = getattr(tensor, VALUES, None)
            if real is not None:
                self._lost.add(_key(real))
                self._overwritten.add(_key(real))

    def _store(self, fake: Any, real: torch.Tensor, numbers: set[int]) -> None:
        setattr(fake, VALUES, real)
        key = _key(real)
        self._memory[key] = real.untyped_storage()
        self._made_of.setdefault(key, set()).update(numbers)


def followed(
    values: Followed, run: Any, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of `run`, an operator on fake tensors, with its values recorded. Operators inside
    another are not followed by themselves."""
    outermost = values.depth == 0
    reals = values.arguments(func, args, kwargs) if outermost else None
    numbers = values.made_of_all(args, kwargs) if reals is not None else set()
    values.depth += 1
    try:
        result = run(func, args, kwargs)
    finally:
        values.depth -= 1
    if reals is not None:
        values.follow(func, result, reals, numbers, (args, kwargs))
    elif outermost:
        values.lose(func, args, kwargs)
    return result


@contextmanager
def data_forgotten() -> Iterator[None]:
    """A block in which an assignment to a tensor's `data`, which no operator does, forgets its
    values."""
    import torch

    # `getattr` on the class would call the descriptor instead of returning it.
    before = inspect.getattr_static(torch.Tensor, "data")

    def assign(tensor: Any, value: torch.Tensor) -> None:
        if hasattr(tensor, VALUES):
            delattr(tensor, VALUES)
        before.__set__(tensor, value)

    with replaced(torch.Tensor, "data", property(before.__get__, assign)):
        yield


@cache
def _is_followed(func: Any) -> bool:
    """True for an operator of PyTorch that always gives the same result."""
    import torch

    name = getattr(func, "_opname", "")
    if getattr(func, "namespace", "") not in ("aten", "prims") or name in UNFOLLOWED | FILLING:
        return False
    return torch.Tag.nondeterministic_seeded not in func.tags


def _tensors(values: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _has_symbols(values: Any) -> bool:
    import torch
    from torch.utils._pytree import tree_leaves

    kinds = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return any(isinstance(leaf, kinds) for leaf in tree_leaves(values))


def may_follow(tensor: torch.Tensor) -> bool:
    """True for a real tensor that is small enough, and lies in plain memory of the CPU."""
    import torch

    plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided
    small = plain and tensor.untyped_storage().nbytes() <= MAX_KEPT_NUMBERS * tensor.itemsize
    return small and tensor.device.type == "cpu"


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """A real tensor with the same layout in memory of its own."""
    from torch.utils._mode_utils import no_dispatch

    with no_dispatch():
        # The whole memory, so that offset and strides stay the same.
        return _view(tensor, tensor.untyped_storage().clone())  # type: ignore[no-untyped-call]


def _view(like: torch.Tensor, memory: Any) -> torch.Tensor:
    """The part of other memory that corresponds to the tensor's part of its own."""
    import torch
    from torch.utils._mode_utils import no_dispatch

    with no_dispatch():
        empty = torch.empty(0, dtype=like.dtype)
        return empty.set_(memory, like.storage_offset(), like.shape, like.stride())


def _fake_kind() -> type:
    from torch._subclasses.fake_tensor import FakeTensor

    return FakeTensor


def _key(real: torch.Tensor) -> int:
    # The address of PyTorch's own object of the memory, which all views of it share.
    return int(real.untyped_storage()._cdata)
