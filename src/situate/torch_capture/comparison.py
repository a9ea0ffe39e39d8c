"""Comparison of two steps that should train the same: without randomness, in precise numbers, by
their gradients."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch


class Draws:
    """Operators of a step without randomness, and the precision of its numbers.

    Attributes:
        bits: of the shortest floating-point numbers.
    """

    def __init__(self) -> None:
        self.bits = 64

    def fixed(self) -> Any:
        """A block in which each operator that draws random numbers returns the same number for
        every sample.

        Dropout keeps all numbers and scales them as it scales those that it keeps.
        """

        return self._mode(_fixed)

    def observed(self) -> Any:
        """A block in which operators draw as they do, and their numbers count for `bits`."""
        return self._mode(_as_called)

    def _mode(self, call: Call) -> Any:
        from torch.utils._python_dispatch import TorchDispatchMode

        run = self._run

        # A dispatch mode sees the operators below autograd, so the backward pass is fixed, too.
        class Observed(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return run(call, func, args, kwargs or {})

        return Observed()  # type: ignore[no-untyped-call]

    def _run(self, call: Call, func: Any, args: Any, kwargs: Any) -> Any:
        import torch

        result = call(func, args, kwargs)
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            self.bits = min(self.bits, 8 * result.element_size())
        return result


Call = Callable[[Any, Any, Any], Any]
"""The result of an operator, its arguments and those by name."""


def _as_called(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _fixed(func: Any, args: Any, kwargs: Any) -> Any:
    import torch

    if torch.Tag.nondeterministic_seeded not in func.tags:
        return func(*args, **kwargs)
    name = func.overloadpacket.__name__
    if name == "native_dropout":
        return _all_kept(*args)
    if name == "randperm":
        return torch.arange(args[0], dtype=kwargs.get("dtype") or torch.int64)
    numbers = func(*args, **kwargs)
    return numbers.fill_(_value(name, args)) if isinstance(numbers, torch.Tensor) else numbers


def _all_kept(
    values: torch.Tensor, p: float, train: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of a dropout that drops nothing, unless its rate is 1."""
    import torch

    is_kept = train is False or p < 1
    scale = 1 / (1 - p) if train is not False and p < 1 else 1
    return values * scale * is_kept, torch.full_like(values, is_kept, dtype=torch.bool)


def _value(name: str, args: Any) -> float:
    """The number that replaces every draw of an operator."""
    if name.startswith(("bernoulli", "geometric", "exponential", "poisson")):
        return 1
    if name.startswith("uniform"):
        low, high = args[1:3] if len(args) > 2 else (0, 1)
        return float(low + high) / 2
    if name in ("rand", "rand_like"):
        return 0.5
    if name.startswith("normal") and len(args) > 1 and isinstance(args[1], (int, float)):
        return float(args[1])
    return 0


TOLERANCES = {64: 1e-6, 32: 1e-2, 16: 0.2}
"""By the bits of a number, the relative difference that the order of additions explains, as a
fraction of a gradient's largest number. Rounding may also carry a number across a kink, such as
that of a ReLU."""

NEGLIGIBLE = 1e-5
"""Gradients below this fraction of the largest one are rounding errors themselves."""


def tolerance(bits: int) -> float:
    """The relative difference that rounding explains if the shortest numbers have `bits` bits."""
    # From the longest numbers down; those of 8 bits have the limit of 16.
    return next(limit for size, limit in TOLERANCES.items() if bits >= size or size == 16)


def gradients_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """By parameter, its gradient, if it has one."""
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def worst_gradient(
    ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]
) -> tuple[float, str]:
    """The largest difference between two steps' gradients, and its parameter; (0, "") if none
    differs.

    The difference is relative to the gradient's largest number. A gradient that one step lacks is
    zero. A negligible gradient is compared with the largest of all, and one that is not a number
    differs by infinity.
    """
    import torch

    zero = torch.zeros(())
    sizes = {name: _largest(gradient) for name, gradient in ours.items()}
    largest = max(sizes.values(), default=0.0)
    parts = {
        name: _part(_largest(ours.get(name, zero) - theirs.get(name, zero)), size, largest)
        for name, size in {**dict.fromkeys(theirs, 0.0), **sizes}.items()
    }
    worst = max(parts, key=parts.__getitem__, default="")
    return (parts[worst], worst) if parts.get(worst) else (0.0, "")


def _largest(gradient: torch.Tensor) -> float:
    """The absolute value of a gradient's largest number; infinite if one is not a number."""
    if not gradient.numel():
        return 0.0
    # Without a copy of the absolute values, which takes ten times as long.
    low, high = (gradient.abs() if gradient.is_complex() else gradient).aminmax()
    # `aminmax` returns NaN if any number is NaN.
    size = max(-float(low), float(high))
    return math.inf if math.isnan(size) else size


def _part(difference: float, size: float, largest: float) -> float:
    """A difference as a fraction of a gradient's size, or of the largest one's if it is
    negligible."""
    scale = size if size > NEGLIGIBLE * largest else largest
    if not difference:
        return 0.0
    return difference / scale if scale and math.isfinite(difference) else math.inf


Result = TypeVar("Result")


def in_precision(dtype: torch.dtype, run: Callable[[torch.dtype | None], Result]) -> Result:
    """The result of `run(dtype)`, which computes in numbers of this type.

    If the step names types itself and so accepts no other, the result is that of `run(None)`.
    """
    try:
        with _default(dtype):
            return run(dtype)
    except Exception:
        # What fails for another reason fails again.
        return run(None)


@contextlib.contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    """A block in which tensors without an explicit type have this type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A copy of a tensor in this floating-point type, or the complex type of the same precision.
    Integers and booleans are returned unchanged."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    dtype = dtype.to_complex() if tensor.is_complex() else dtype
    return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)


def model_in(dtype: torch.dtype | None, model: torch.nn.Module) -> torch.nn.Module:
    """The model, converted in place to 32 or 64 bits; None keeps its own types."""
    import torch

    if dtype is None:
        return model
    return model.double() if dtype is torch.float64 else model.float()
