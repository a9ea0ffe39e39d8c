"""Parts of a model, its inputs and PyTorch's settings that a step is to leave as they were."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture.refusals.remedies import Unsupported

if TYPE_CHECKING:
    import torch


def invariants(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> dict[str, object]:
    """All that a captured step leaves as it is, by its name."""
    found: dict[str, object] = {
        "the parameters and modules of the model": (
            [(name, id(p)) for name, p in model.named_parameters(remove_duplicate=False)],
            [(name, id(m)) for name, m in model.named_modules(remove_duplicate=False)],
        )
    }
    for path, module in model.named_modules():
        of = f"module {path!r}" if path else "the model"
        found[f"whether {of} trains (train or eval)"] = module.training
    for name, p in model.named_parameters():
        grad = p.grad
        found[f"the gradient of parameter {name!r}"] = grad is None or (id(grad), grad._version)
        found[f"whether parameter {name!r} takes a gradient"] = p.requires_grad
        found[f"the memory of parameter {name!r}"] = (
            p.untyped_storage()._cdata,
            p.shape,
            p.stride(),
        )
    for k, tensor in enumerate(inputs):
        found[f"the shape of input {k}"] = tensor.shape, tensor.stride()
        found[f"whether input {k} takes a gradient"] = tensor.requires_grad
    return found


@contextlib.contextmanager
def contents_kept(inputs: Any) -> Iterator[None]:
    """The dicts and lists of a step's inputs hold in the end what they did in the beginning; the
    attributes of caches may change.

    Raises:
        SituateError: they hold something else.
    """
    from torch.utils._pytree import tree_flatten

    leaves, structure = tree_flatten(inputs)
    yield
    left, outer = tree_flatten(inputs)
    if outer != structure or any(map(operator.is_not, left, leaves)):
        raise SituateError(
            "the step puts something into a dict or list of its inputs, or takes it out, which a "
            "placed step would not: let it change a copy, as dict(batch)"
        )


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """PyTorch is set as it was before.

    Raises:
        Unsupported: something else was set within.
    """
    settings = _settings()
    before = {name: read() for name, (read, _) in settings.items()}
    try:
        yield
    finally:
        changed = [name for name, (read, _) in settings.items() if read() != before[name]]
        for name in changed:
            _, write = settings[name]
            write(before[name])
    if changed:
        raise Unsupported(
            f"the step leaves another setting of PyTorch behind ({changed[0]}): set it before the "
            "step, or in the step by what sets it back, as a `with` does"
        )


def _settings() -> dict[str, tuple[Callable[[], Any], Callable[[Any], object]]]:
    """By the function that sets it, what reads and what writes a setting of PyTorch."""
    import torch

    return {
        "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
        "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "torch.use_deterministic_algorithms": (
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
        "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    }
