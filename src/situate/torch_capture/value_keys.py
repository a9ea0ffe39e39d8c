"""Keys of calls: equal for calls of an operator that have equal results on fake tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import fx


class ValueKeys:
    """Numbers of fake values; values with equal layouts have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        # By identity, with the value itself, which so stays alive and keeps its identity.
        self._of_object: dict[int, tuple[int, Any]] = {}

    def of_call(self, node: fx.Node) -> Any:
        """The key of a call."""
        return node.target, self.of(node.args), self.of(node.kwargs)

    def of(self, arguments: Any) -> Any:
        """The key of nested arguments, in which nodes stand for their values."""
        if hasattr(arguments, "meta"):
            return self._number(arguments.meta["val"])
        if isinstance(arguments, (list, tuple)):
            return tuple(map(self.of, arguments))
        if isinstance(arguments, Mapping):
            return tuple((name, self.of(value)) for name, value in arguments.items())
        # True equals 1, and 1 equals 1.0, as keys of a dict.
        return type(arguments), arguments

    def _number(self, value: Any) -> int:
        entry = self._of_object.get(id(value))
        if entry is None:
            key = _tensors_key(value)
            entry = self._numbers.setdefault(key, len(self._numbers)), value
            self._of_object[id(value)] = entry
        return entry[0]


def _tensors_key(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_tensor_key, value))
    return _tensor_key(value)


def _tensor_key(value: Any) -> Any:
    if not hasattr(value, "stride"):
        return type(value), value
    stored = value.untyped_storage().nbytes()
    return tuple(value.shape), value.stride(), value.dtype, value.device, stored, value.is_conj()
