"""User-defined operators, whose modules every process must import."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.torch_capture.cost import overwrites
from situate.torch_capture.function import current_directory

if TYPE_CHECKING:
    from torch import fx


def check_functional(nodes: Iterable[fx.Node]) -> None:
    """Refuse operators that overwrite their inputs, as other ops may read those.

    Raises:
        SituateError: names the operator.
    """
    for node in nodes:
        if operator := overwrites(node):
            raise SituateError(
                f"operator {operator} writes over its inputs, which no placed step does: let it "
                "return new tensors, as a torch.library.custom_op with mutates_args=()"
            )


def defining_modules(kernels: Iterable[str]) -> tuple[str, ...]:
    """The modules that define the `torch.library.custom_op` operators among qualified names."""
    from torch._library.custom_ops import OPDEFS

    packets = {kernel.partition(".")[0] for kernel in kernels}
    # `OPDEFS` holds every custom_op with its decorated function. A worker cannot import the
    # caller's `__main__`, since its own has that name.
    modules = {OPDEFS[name]._init_fn.__module__ for name in packets if name in OPDEFS}
    return tuple(sorted(modules - {"__main__"}))


def load(modules: Iterable[str]) -> None:
    """Import modules, also from the current directory, where users' functions are."""
    with current_directory():
        for module in modules:
            importlib.import_module(module)
