"""Tensors that a model keeps without naming them a buffer, in a step that is exported: they stay on
the model's fake tensors, where all others are on export's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import replaced

if TYPE_CHECKING:
    from torch import fx


@contextlib.contextmanager
def lifted_apart() -> Iterator[None]:
    """Let export look for its sizes among both; PyTorch asks that all tensors be of one kind."""
    from torch.export import exported_program

    before = exported_program._get_shape_env

    def shape_env(module: fx.GraphModule) -> Any:
        # PyTorch's own function raises an error where nodes have tensors of two fake modes; the
        # first mode with an environment of sizes is export's.
        modes = (getattr(n.meta.get("val"), "fake_mode", None) for n in module.graph.nodes)
        found = (mode.shape_env for mode in modes if mode is not None)
        return next((env for env in found if env is not None), None) or before(module)  # type: ignore[no-untyped-call]

    with replaced(exported_program, "_get_shape_env", shape_env):
        yield
