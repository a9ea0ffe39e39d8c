"""The difference between steps of slices and steps of the whole batch, and between steps in parts
and steps of whole ops, in a line."""

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
            f"Slices against the whole batch: equal but for rounding in {_count(difference.steps)} "
            f"without chance; others may differ: {reasons}.",
            "yellow",
        )
    if difference.is_rounding:
        return Text("Slices against the whole batch: equal but for rounding.", "green")
    text = (
        f"Slices against the whole batch: the loss differs by {difference.loss:.3g}, gradients by "
        f"up to {difference.gradient:.3g} of their largest number{_where(difference.name)}"
    )
    if difference.buffer > difference.tolerance:
        text += f", buffers by up to {difference.buffer:.3g}{_where(difference.buffer_name)}"
    if not reasons:
        return Text(f"{text}; nothing that situate knows of explains it.", "bold red")
    return Text(f"{text}: {reasons}.", "yellow")


def parts_text(difference: BatchDifference) -> Text:
    """The differences between a step in parts and that of whole ops."""
    if difference.is_rounding:
        return Text("Parts against whole ops: equal but for rounding.", "green")
    return Text(
        f"Parts against whole ops: the results differ by {difference.loss:.3g}, gradients by up to "
        f"{difference.gradient:.3g} of their largest number{_where(difference.name)}; this is a "
        "fault of situate: please report it.",
        "bold red",
    )


def parts_figures(difference: BatchDifference) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "parts_result_difference": difference.loss,
        "parts_gradient_difference": difference.gradient,
        "parts_parameter": difference.name or None,
        "parts_equal": difference.is_rounding,
    }


def _count(steps: int) -> str:
    return "one step" if steps == 1 else f"{steps} steps"


def _where(name: str) -> str:
    return f", in {printable(name)}" if name else ""


def is_unexplained(difference: BatchDifference, warnings: Sequence[str]) -> bool:
    """True if slices change a step, and no warning says why."""
    return not (difference.is_rounding or _reasons(warnings))


def batch_figures(difference: BatchDifference, warnings: Sequence[str]) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "batch_loss_difference": difference.loss,
        "batch_gradient_difference": difference.gradient,
        "batch_parameter": difference.name or None,
        "batch_buffer_difference": difference.buffer,
        "batch_buffer": difference.buffer_name or None,
        "batch_steps": difference.steps,
        "batch_equal": difference.is_rounding,
        "batch_reasons": _reasons(warnings),
    }


def _reasons(warnings: Sequence[str]) -> list[str]:
    return [text.removeprefix(PREFIX) for text in warnings if text.startswith(PREFIX)]
