"""The settings of `colocrl`: those of the paper and tuned ones."""

from __future__ import annotations

from dataclasses import dataclass

from situate.policies.shapes import Shape

PAPER_SHAPE = Shape(hidden=128)


@dataclass(frozen=True)
class ColocSettings:
    """The defaults are the paper's (ICML 2017), and ours where it is silent; see
    docs/methods/colocrl.md.

    Attributes:
        shape: of the policy; ours.
        grouping, groups: rule and number, as `situate.grouping.group` takes them; the paper places
            colocation groups.
        K: placements between two updates, one for each worker of a controller; 4 to 8 in the
            paper.
        learning_rate: of Adam; ours.
        clip: largest norm of a gradient; None for no limit; ours.
        decay: of the moving average that serves as the baseline; ours.
        late: updates after which failed placements are ignored; 5,000 in the paper.
        normalise: replace r - B by the logarithm of the seconds, standardised over the batch. If
            all are equal, it is relative to the baseline.
        entropy: weight of the policy's entropy; 0 for none, as in the paper's settings.
    """

    shape: Shape = PAPER_SHAPE
    grouping: str = "colocation"
    groups: int | None = None
    K: int = 8
    learning_rate: float = 1e-3
    clip: float | None = 1.0
    decay: float = 0.9
    late: int = 5000
    normalise: bool = False
    entropy: float = 0.0


PAPER = ColocSettings()
TUNED = ColocSettings(
    shape=Shape(hidden=128, score="general", aligned=True),
    grouping="structure",
    groups=96,
    K=12,
    learning_rate=3e-3,
    normalise=True,
    entropy=3.0,
)
