"""The settings of `spotlight`: those of the paper and tuned ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situate.policies.shapes import Shape

PAPER_SHAPE = Shape(hidden=64, layers=2, width=16)


@dataclass(frozen=True)
class SpotlightSettings:
    """The defaults are the paper's (ICML 2018), and ours where its slides are silent; see
    docs/methods/spotlight.md.

    Attributes:
        shape: of the policy; its two layers are the paper's, the widths ours.
        grouping, groups: rule and number, as `situate.grouping.group` takes them; the paper groups
            ops by a two-level prefix of their names.
        K: trials between two updates; one in Algorithm 1.
        steps: of ascent in an update; ten in Algorithm 1, line 21.
        ascent: rule of each step; plain in Algorithm 1.
        learning_rate: of each step; ours.
        clip: largest norm of a gradient; None for no limit.
        beta: weight of the KL penalty; 1 in Algorithm 1, line 3.
        normalise: the reward is minus the logarithm of a trial's seconds, standardised over its
            batch.
    """

    shape: Shape = PAPER_SHAPE
    grouping: str = "prefix"
    groups: int | None = None
    K: int = 1
    steps: int = 10
    ascent: Literal["plain", "adam"] = "plain"
    learning_rate: float = 0.1
    clip: float | None = None
    beta: float = 1.0
    normalise: bool = False


PAPER = SpotlightSettings()
TUNED = SpotlightSettings(
    shape=Shape(hidden=48, layers=2, score="general", aligned=True),
    grouping="structure",
    groups=96,
    K=12,
    steps=4,
    ascent="adam",
    learning_rate=1e-2,
    clip=1.0,
    normalise=True,
)
