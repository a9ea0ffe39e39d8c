"""The optimisers that a placed step can run: PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.data.update_rule import OPTIMIZERS
from situate.errors import SituateError

if TYPE_CHECKING:
    import torch

Hyperparameters = dict[str, Any]
"""The settings of a group of parameters, by name; see `hyperparameters` and `owner_types`."""

_UNSUPPORTED_OPTIONS = ("amsgrad", "capturable", "differentiable", "fused", "dampening")
"""Options that would need other state or computations than the captured ones."""


def default_optimizer(kind: str, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """PyTorch's optimiser of that kind with its own defaults; momentum is 0.9."""
    import torch

    if kind == "momentum":
        return torch.optim.SGD(parameters, momentum=0.9)
    return next(make for make, name in _kinds().items() if name == kind)(parameters)


def kind_of(optimizer: torch.optim.Optimizer) -> str:
    """The kind of an optimiser, one of `OPTIMIZERS`.

    Raises:
        SituateError: another optimiser, or one with options that a placed step does not support.
    """
    kinds, name = _kinds(), type(optimizer).__name__
    if type(optimizer) not in kinds:
        raise SituateError(
            f"optimizer {name}: a placed step runs torch.optim's SGD, Adam, AdamW, Adafactor and "
            "Muon, and AdamW with rounded moments: plan with --optimizer "
            f"{', '.join(OPTIMIZERS)} and give one of those"
        )
    check_options(optimizer)
    if kinds[type(optimizer)] != "sgd":
        return kinds[type(optimizer)]
    # With momentum every parameter keeps a buffer: the memory differs, so the kinds do.
    momenta = {bool(group.get("momentum")) for group in optimizer.param_groups}
    if len(momenta) > 1:
        raise SituateError(f"optimizer {name}: give all groups momentum, or none")
    return "momentum" if momenta == {True} else "sgd"


def _kinds() -> dict[Callable[..., torch.optim.Optimizer], str]:
    """The kinds of optimisers by class."""
    import torch

    from situate.runtime.model_state.muon import MuonAdamW
    from situate.runtime.model_state.rounded_moments import AdamW8bit, AdamWBf16

    return {
        # The first of a kind is that of `default_optimizer`.
        MuonAdamW: MuonAdamW.kind,
        torch.optim.Muon: MuonAdamW.kind,
        torch.optim.Adam: "adam",
        torch.optim.AdamW: "adamw",
        torch.optim.SGD: "sgd",
        torch.optim.Adafactor: "adafactor",
        AdamWBf16: AdamWBf16.kind,
        AdamW8bit: AdamW8bit.kind,
    }


def check_options(optimizer: torch.optim.Optimizer) -> None:
    """Refuse unsupported options.

    Raises:
        SituateError: an option is set that a placed step does not support.
    """
    import torch

    name, decoupled = type(optimizer).__name__, isinstance(optimizer, torch.optim.AdamW)
    for group in optimizer.param_groups:
        if on := [option for option in _UNSUPPORTED_OPTIONS if group.get(option)]:
            raise SituateError(f"optimizer {name}: leave {on[0]} out: no placed step has it")
        if bool(group.get("decoupled_weight_decay", decoupled)) != decoupled:
            remedy = "on, or plan for Adam" if decoupled else "out, or plan for AdamW, which has it"
            raise SituateError(f"optimizer {name}: leave decoupled_weight_decay {remedy}")


@dataclass(frozen=True)
class _TypedNumber:
    """A number of a tensor or of NumPy. Its type decides the rounding of updates; it can be
    compared, and sent to another process.

    Attributes:
        kind: the dtype of a tensor, or NumPy's type.
        shape: of the tensor.
    """

    value: float
    kind: Any
    shape: tuple[int, ...] = ()

    def original(self) -> Any:
        """The number, in its original type."""
        import torch

        if isinstance(self.kind, torch.dtype):
            number = torch.tensor(self.value, dtype=self.kind, device="cpu")
            return number.reshape(self.shape)
        return self.kind(self.value)


def hyperparameters(optimizer: torch.optim.Optimizer) -> list[Hyperparameters]:
    """The current settings of every group of parameters, for `owner_types`.

    Raises:
        SituateError: a setting is a tensor of several numbers.
    """
    return [
        {key: _portable_number(key, value) for key, value in group.items() if key != "params"}
        # A placed step updates one parameter at a time.
        | {"foreach": False}
        for group in optimizer.param_groups
    ]


def _portable_number(name: str, value: Any) -> Any:
    import numpy as np
    import torch

    if isinstance(value, (tuple, list)):
        return tuple(_portable_number(name, entry) for entry in value)
    # A number of NumPy, or of a tensor of one, takes part in type promotion, unlike a plain float.
    if isinstance(value, np.generic):
        return _TypedNumber(value.item(), type(value))
    if not isinstance(value, (torch.Tensor, np.ndarray)):
        return value
    if value.size != 1 if isinstance(value, np.ndarray) else value.numel() != 1:
        raise SituateError(f"optimizer: {name} has shape {tuple(value.shape)}: give one number")
    if isinstance(value, np.ndarray):
        return _TypedNumber(value.item(), value.dtype.type)
    return _TypedNumber(value.item(), value.dtype, tuple(value.shape))


def owner_types(hyperparameters: Hyperparameters) -> Hyperparameters:
    """The settings of a group of parameters, in the types that the caller gave."""
    return {name: _owner_number(value) for name, value in hyperparameters.items()}


def _owner_number(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_owner_number, value))
    return value.original() if isinstance(value, _TypedNumber) else value
