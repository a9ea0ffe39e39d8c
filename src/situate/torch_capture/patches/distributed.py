"""Models that are spread over processes already."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.remedies import Unsupported

if TYPE_CHECKING:
    import torch

SPREADING = (
    "torch.nn.parallel.distributed",
    *(f"torch.distributed.{part}" for part in ("fsdp", "tensor", "_composable")),
)
"""Where PyTorch has the classes of models and parameters that are spread."""


@contextlib.contextmanager
def no_replicas() -> Iterator[None]:
    """Refuse to wrap a model in DistributedDataParallel, which fails on fake tensors."""
    from torch.nn.parallel import DistributedDataParallel

    def refuse(wrapper: Any, *_: object, **__: object) -> None:
        raise Unsupported(_refusal("the model", type(wrapper).__name__))

    with replaced(DistributedDataParallel, "__init__", refuse):
        yield


def check_of_one_process(model: torch.nn.Module) -> None:
    """Raises SituateError for a model that is replicated or sharded, or a module of it."""
    for name, module in model.named_modules():
        held = (module, *module._parameters.values(), *module._buffers.values())
        if spread := next(filter(None, map(_spread, held)), ""):
            raise SituateError(_refusal(f"module {name!r}" if name else "the model", spread))


def _spread(held: object) -> str:
    """The name of the class that spreads what is held over processes; empty where none does."""
    classes = (each for each in type(held).__mro__ if each.__module__.startswith(SPREADING))
    return next((each.__name__ for each in classes), "")


def _refusal(which: str, how: str) -> str:
    return (
        f"{which} is spread over processes by {how}, and what is captured is a model of one "
        "process: return it as it was before"
    )
