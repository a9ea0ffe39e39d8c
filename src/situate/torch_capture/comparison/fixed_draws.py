"""Steps without chance, so that two of them can be compared: every draw gives one fixed number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Draws:
    """The operators of a step without chance, and the precision of its numbers.

    Attributes:
        bits: of the shortest numbers.
    """

    def __init__(self) -> None:
        self.bits = 64

    def fixed(self) -> Any:
        """A block in which each operator that draws numbers gives the same ones for every sample.

        Dropout keeps all numbers, and scales them as it does those that it keeps.
        """
        from torch.utils._python_dispatch import TorchDispatchMode

        called = self._called

        class FixedDraws(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return called(func, args, kwargs or {})

        return FixedDraws()  # type: ignore[no-untyped-call]

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:
        import torch

        result = _fixed(func, args, kwargs)
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            self.bits = min(self.bits, 8 * result.element_size())
        return result


def _fixed(func: Any, args: Any, kwargs: Any) -> Any:
    import torch

    if torch.Tag.nondeterministic_seeded not in func.tags:
        return func(*args, **kwargs)
    name = func.overloadpacket.__name__
    if name == "native_dropout":
        return _all_kept(*args)
    if name == "randperm":
        return torch.arange(args[0], dtype=kwargs.get("dtype") or torch.int64)
    drawn = func(*args, **kwargs)
    return drawn.fill_(_value(name, args)) if isinstance(drawn, torch.Tensor) else drawn


def _all_kept(
    values: torch.Tensor, p: float, train: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The results of a dropout that keeps all numbers, unless it never keeps any."""
    import torch

    is_kept = train is False or p < 1
    scale = 1 / (1 - p) if train is not False and p < 1 else 1
    return values * scale * is_kept, torch.full_like(values, is_kept, dtype=torch.bool)


def _value(name: str, args: Any) -> float:
    """The number that is drawn every time."""
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
