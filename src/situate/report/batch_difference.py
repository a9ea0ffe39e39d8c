"""The difference between a step of slices and the step of the whole batch, in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from situate.report.text import printable

if TYPE_CHECKING:
    from situate.runtime.whole_batch import BatchDifference

PREFIX = "slices: "


def batch_text(found: BatchDifference, warnings: Sequence[str]) -> Text:
    """The differences between a step of slices and that of the whole batch, with their reasons.

    Args:
        found: the difference.
        warnings: of the graph, which say what depends on the whole batch.
    """
    if found.is_rounding:
        return Text("Slices against the whole batch: equal but for rounding.", "green")
    where = f", in {printable(found.name)}" if found.name else ""
    text = (
        f"Slices against the whole batch: the loss differs by {found.loss:.3g}, gradients by up to "
        f"{found.gradient:.3g} of their largest number{where}"
    )
    reasons = _reasons(warnings)
    if not reasons:
        return Text(f"{text}; nothing that situate knows of explains it.", "bold red")
    return Text(f"{text}: {'; '.join(map(printable, reasons))}.", "yellow")


def is_unexplained(found: BatchDifference, warnings: Sequence[str]) -> bool:
    """True if slices change a step, and no warning says why."""
    return not (found.is_rounding or _reasons(warnings))


def batch_figures(found: BatchDifference, warnings: Sequence[str]) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "batch_loss_difference": found.loss,
        "batch_gradient_difference": found.gradient,
        "batch_parameter": found.name or None,
        "batch_equal": found.is_rounding,
        "batch_reasons": _reasons(warnings),
    }


def _reasons(warnings: Sequence[str]) -> list[str]:
    return [text.removeprefix(PREFIX) for text in warnings if text.startswith(PREFIX)]
