"""Types and contents of the values in a graph and in the graphs around it."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field
from typing import Any

from situate.readers.onnx.folding import is_small
from situate.readers.onnx.limits import CONSTANT_LIMIT
from situate.readers.onnx.shapes import tensor_info
from situate.readers.onnx.types import tensor, tensor_of


@dataclass
class Scope:
    """Types of values by name, and the contents of values that do not depend on data."""

    types: ChainMap[str, Any] = field(default_factory=ChainMap)
    lists: ChainMap[str, tuple[str, ...]] = field(default_factory=ChainMap)
    """Names of the tensors in each sequence and optional."""
    stated: dict[str, Any] = field(default_factory=dict)
    """Types that the graph states for its nodes' outputs; inferred types override them."""
    is_body: bool = False
    _contents: ChainMap[str, Any] = field(default_factory=ChainMap)

    def inner(self) -> Scope:
        """The scope of a body."""
        return Scope(
            self.types.new_child(),
            self.lists.new_child(),
            is_body=True,
            _contents=self._contents.new_child(),
        )

    def bind(self, name: str, kind: Any, content: Any = None) -> None:
        """Bind the type of a value and, if known, its content as a tensor."""
        self.types[name] = kind
        self._contents[name] = content

    def content(self, name: str) -> Any:
        """The content of a value as a tensor; None if unknown."""
        return self._contents.get(name)

    def number(self, name: str) -> int | None:
        """The content of a single integer or truth value; None if unknown."""
        import onnx

        if (content := self.content(name)) is None:
            return None
        array = onnx.numpy_helper.to_array(content)
        return int(array.reshape(())) if array.size == 1 else None

    def hold(self, graph: Any) -> None:
        """Bind the constants of a graph; contents of large ones and of other files are unknown."""
        for constant in graph.initializer:
            content = constant if _is_whole(constant) else None
            self.bind(constant.name, tensor_of(constant), content)
        for sparse in graph.sparse_initializer:
            self.bind(sparse.values.name, tensor(sparse.values.data_type, sparse.dims))


def _is_whole(constant: Any) -> bool:
    """True if the content of a constant is small, in this file, and as long as its shape says."""
    import onnx

    small = is_small(constant.dims) and tensor_info(constant).bytes <= CONSTANT_LIMIT
    if not small or constant.external_data:
        return False
    try:
        onnx.numpy_helper.to_array(constant)
    except (TypeError, ValueError, KeyError, RuntimeError):  # damaged, or of an unknown type
        return False
    return True
