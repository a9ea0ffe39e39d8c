"""An ONNX model with complete types for all values, and the constants found on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from situate.errors import ReadError
from situate.files.contents import one_line
from situate.readers.onnx.dims import fix_inputs, sizes
from situate.readers.onnx.limits import check_functions, forget_weights
from situate.readers.onnx.names import graphs_of
from situate.readers.onnx.walk import Walk


@dataclass(frozen=True)
class Inferred:
    """A model without functions, with a shape for every value."""

    graph: Any
    constants: frozenset[str]
    """Values that do not depend on any input's data."""
    warnings: tuple[str, ...]


def infer(model: Any, dims: Mapping[str, int]) -> Inferred:
    """The model with numbers for its open dimensions and inferred types for all values.

    Raises:
        ReadError: a size in `dims` that contradicts the model or is not positive; shapes that
            contradict one another or cannot be inferred; functions that expand to too many nodes.
    """
    if model.functions:
        check_functions(model)
    for graph in graphs_of(model.graph):
        forget_weights(graph)
    model = _inlined(model) if model.functions else model
    dim_sizes = sizes(model.graph, dims)
    warnings = fix_inputs(model.graph, dim_sizes)
    walk = Walk(model, dim_sizes)
    walk.notes.defaults += warnings.values()
    walk.outermost(model.graph)
    dim_sizes.check_used(dims)
    return Inferred(model.graph, frozenset(walk.constants), (*warnings, *walk.notes.warnings()))


def _inlined(model: Any) -> Any:
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:  # onnx raises whatever its C++ parts throw
        raise ReadError(f"its functions cannot be read: {one_line(str(error))[:300]}") from None
