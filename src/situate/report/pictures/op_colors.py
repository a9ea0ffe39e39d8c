"""The colour of an op in a picture: by phase, else by top-level module, else by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.graph import Op

PHASES = {"forward": "#4477AA", "backward": "#EE7733", "update": "#006B1B"}
PALETTE = (
    "#4477AA", "#EE7733", "#006B1B", "#AA3377", "#66CCEE",
    "#DDCC55", "#6E0C40", "#74B68E", "#AA5B67", "#332288",
)  # fmt: skip
"""After Tol's qualitative colours. With `OTHER` and the colour of transfers they are at least 15
apart (CIE 1976), also for colour-blind readers."""
LIGHT = {"#66CCEE", "#DDCC55", "#74B68E"}
"""Colours on which text must be dark."""
LIGHTEST = 0.6
"""Share of white in the last slice's shade."""
BRIGHT = 450
"""Red, green and blue together from which on a shade needs dark text."""
OTHER = "#9AA0A6"
INK, PALE, GRID = "#202124", "#5F6368", "#DADCE0"
"""Colours of text, of secondary text, and of lines behind the drawing."""


@dataclass(frozen=True, eq=False)
class OpColors:
    """The classes of n ops, with a colour each.

    Attributes:
        labels: of the first classes.
        colors: one a class; the colours after those with labels are shades of them.
        of: (n,) class of each op.
    """

    labels: tuple[str, ...]
    colors: tuple[str, ...]
    of: NDArray[np.int64]

    def ink(self, op: int) -> str:
        """The colour of text on the op's."""
        return ink_on(self.colors[int(self.of[op])])


def ink_on(color: str) -> str:
    """The colour of text on one of `PALETTE`, or on a shade of it."""
    is_light = color in LIGHT or (color not in PALETTE and sum(_channels(color)) > BRIGHT)
    return INK if is_light else "white"


def op_colors(ops: Sequence[Op], weight: NDArray[np.float64]) -> OpColors:
    """Classes of `ops`; where there are many, only those of most `weight` (n,) have a colour."""
    classes = op_classes(ops, weight)
    if any(op.phase for op in ops):
        return _shaded(classes, [op.slice or 0 for op in ops])
    return classes


def op_classes(ops: Sequence[Op], weight: NDArray[np.float64]) -> OpColors:
    """The same without shades for slices."""
    if any(op.phase for op in ops):
        return _phases([op.phase for op in ops])
    modules = [op.module.partition(".")[0] for op in ops]
    if len(set(modules)) > 1:
        return _largest(modules, weight)
    return _largest([op.kind for op in ops], weight)


def _phases(phases: list[str]) -> OpColors:
    present = [phase for phase in PHASES if phase in phases]
    rest = any(phase not in PHASES for phase in phases)
    index = {phase: i for i, phase in enumerate(present)}
    of = np.array([index.get(phase, len(present)) for phase in phases])
    return OpColors(
        (*present, *["other"] * rest),
        (*(PHASES[phase] for phase in present), *[OTHER] * rest),
        of,
    )


def _shaded(phases: OpColors, slices: Sequence[int]) -> OpColors:
    """Phase colours with lighter shades for ops of later slices."""
    of, colors = phases.of.copy(), [*phases.colors]
    last = max(slices, default=0)
    for number in range(1, last + 1):
        in_slice = np.array(slices) == number
        for k in np.unique(phases.of[in_slice]).tolist():
            of[in_slice & (phases.of == k)] = len(colors)
            colors.append(_lighter(phases.colors[k], LIGHTEST * number / last))
    return OpColors(phases.labels, tuple(colors), of)


def _lighter(color: str, white: float) -> str:
    """A colour with a share of white in it."""
    mixed = (round(channel + white * (255 - channel)) for channel in _channels(color))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def _channels(color: str) -> tuple[int, int, int]:
    """Red, green and blue, up to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _largest(labels: list[str], weight: NDArray[np.float64]) -> OpColors:
    totals: dict[str, float] = dict.fromkeys(labels, 0.0)
    for label, seconds in zip(labels, weight.tolist(), strict=True):
        totals[label] += seconds
    nonempty = [label for label in totals if label]
    largest = sorted(nonempty, key=lambda label: -totals[label])[: len(PALETTE)]
    largest.sort(key=nonempty.index)
    rest = len(largest) < len(totals)
    index = {label: i for i, label in enumerate(largest)}
    of = np.array([index.get(label, len(largest)) for label in labels])
    colors = (*PALETTE[: len(largest)], *[OTHER] * rest)
    return OpColors((*largest, *["other"] * rest), colors, of)
