"""The difference between a step of slices and the step of the whole batch, in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from situate.report.text import printable

if TYPE_CHECKING:
    from situate.runtime.whole_batch import BatchDifference

PREFIX = "slices: "


def batch_text(difference: BatchDifference, warnings: Sequence[str]) -> Text:
    """The differences between a step of slices and that of the whole batch, with their reasons.

    Args:
        difference: the difference.
        warnings: of the graph; they name the ops that depend on the whole batch.
    """
    reasons = "; ".join(map(printable, _reasons(warnings)))
    if difference.is_rounding and reasons:
        return Text(
            "Slices against the whole batch: equal but for rounding in one step without chance; "
            f"others may differ: {reasons}.",
            "yellow",
        )
    if difference.is_rounding:
        return Text("Slices against the whole batch: equal but for rounding.", "green")
    where = f", in {printable(difference.name)}" if difference.name else ""
    text = (
        f"Slices against the whole batch: the loss differs by {difference.loss:.3g}, gradients by "
        f"up to {difference.gradient:.3g} of their largest number{where}"
    )
    if not reasons:
        return Text(f"{text}; nothing that situate knows of explains it.", "bold red")
    return Text(f"{text}: {reasons}.", "yellow")


def is_unexplained(difference: BatchDifference, warnings: Sequence[str]) -> bool:
    """True if slices change a step, and no warning says why."""
    return not (difference.is_rounding or _reasons(warnings))


def batch_figures(difference: BatchDifference, warnings: Sequence[str]) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "batch_loss_difference": difference.loss,
        "batch_gradient_difference": difference.gradient,
        "batch_parameter": difference.name or None,
        "batch_equal": difference.is_rounding,
        "batch_reasons": _reasons(warnings),
    }


def _reasons(warnings: Sequence[str]) -> list[str]:
    return [text.removeprefix(PREFIX) for text in warnings if text.startswith(PREFIX)]
