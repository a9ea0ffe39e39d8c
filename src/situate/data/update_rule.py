"""The update rule of a step, as commands name it: `adamw`, or `adamw:clip=1.0`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from situate.errors import SituateError, nearest
from situate.validation import check

OPTIMIZERS: dict[str, tuple[int, int]] = {
    "sgd": (0, 2),
    "momentum": (1, 4),
    "adam": (2, 12),
    "adamw": (2, 14),
}
"""By optimiser: numbers it keeps, and arithmetic operations it does, for every parameter."""

CLIP = "clip="
"""Prefix of the largest norm, in the text of a rule and in the names of ops that clip."""


@dataclass(frozen=True)
class UpdateRule:
    """An optimiser, and the clipping of gradients before it.

    Attributes:
        kind: one of `OPTIMIZERS`.
        clip: the largest 2-norm of all gradients together; longer gradients are scaled down to it.
    """

    kind: str
    clip: float | None = None

    def __str__(self) -> str:
        return self.kind if self.clip is None else f"{self.kind}:{CLIP}{self.clip!r}"


DEFAULT = UpdateRule("sgd")
"""Default rule of a captured step."""


def update_rule(text: str) -> UpdateRule:
    """The rule that a text names.

    Raises:
        SituateError: an unknown optimizer, or a norm that is not a positive number.
    """
    check(text, str, "optimizer")
    kind, colon, option = text.partition(":")
    if kind not in OPTIMIZERS:
        raise SituateError(f"unknown optimizer {kind!r}{nearest(kind, OPTIMIZERS)}")
    return UpdateRule(kind, _norm(option, text) if colon else None)


def _norm(option: str, text: str) -> float:
    try:
        norm = float(option.removeprefix(CLIP)) if option.startswith(CLIP) else math.nan
    except ValueError:
        norm = math.nan
    if not (math.isfinite(norm) and norm > 0):
        raise SituateError(
            f"optimizer {text!r}: behind the colon stands the largest norm of the gradients, a "
            "positive number, such as adamw:clip=1.0"
        )
    return norm
