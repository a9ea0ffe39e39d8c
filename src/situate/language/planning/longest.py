"""The longest context that fits on a home."""

from __future__ import annotations

from dataclasses import replace

from situate.errors import PlanError
from situate.language.cache import MAX_CONTEXT, PAD
from situate.language.planning.planner import Planner

MAX_TOKENS = 2**22
"""Longest context of a model that does not say its own."""


def longest_context(planner: Planner) -> Planner:
    """The planner with the longest context for which a layout fits, up to the model's.

    Raises:
        PlanError: none fits.
    """
    slots = planner.options.slots
    most = slots * (planner.model.sizes.context or MAX_TOKENS)
    least = min(most, slots * (planner.work.prompt + planner.work.reply))
    if not _with(planner, least).fits():
        raise PlanError(
            f"{planner.model.name} does not fit on {planner.home.name} with {least:,} tokens: take "
            "a smaller type, or --cache-type q8_0"
        )
    if _with(planner, min(most, MAX_CONTEXT)).fits():
        return _with(planner, min(most, MAX_CONTEXT))
    # Bisection by units of `PAD`: `low` fits, `high` does not.
    low, high = least // PAD, most // PAD
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _with(planner, middle * PAD).fits() else (low, middle)
    return _with(planner, max(least, low * PAD))


def _with(planner: Planner, context: int) -> Planner:
    return replace(planner, options=replace(planner.options, context=context))
