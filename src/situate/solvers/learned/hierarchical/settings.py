"""The settings of `hierarchical`: those of the paper and tuned ones."""

from __future__ import annotations

from dataclasses import dataclass

from situate.policies.shapes import Score


@dataclass(frozen=True)
class HierarchicalSettings:
    """The defaults are the paper's and, where it is silent, its released controller's; see
    docs/methods/hierarchical.md.

    Attributes:
        groups: number of groups.
        grouping: the rule whose groups the grouper begins with; None for random groups.
        trust: initial logit of a unit's group in `grouping`.
        grouper_hidden: width of the grouper's hidden layer.
        relu: True if that layer is rectified.
        hidden, width, score, aligned: of the placer, see `Placer`.
        tanh_constant, temperature: C and T of the placer's logits C tanh(l / T), or l / T where C
            is None.
        groupings, placements: groupings per update (m), and placements per grouping (k).
        learning_rate: of Adam.
        decay, decay_every, decay_from: factor on the learning rate, the updates between two
            decays, and the first update with decay.
        clip: largest norm of a gradient.
        noise, noise_until: noise of the logits when drawing, relative to their root mean square,
            and the last update that has it.
        baseline: decay of the rewards' moving average.
        pessimistic: True if that average begins at the reward of a failure; else it begins at the
            mean of the first update.
        late: updates after which failed placements are ignored; None for never.
        normalise: take advantages relative to the update's own mean, and divide them by their root
            mean square. If all rewards are equal, they are relative to the moving average.
        entropy: weight of the entropy of the placer's distributions, in nats a group; 0 for none.
    """

    groups: int = 256
    grouping: str | None = None
    trust: float = 0.0
    grouper_hidden: int = 64
    relu: bool = False
    hidden: int = 512
    width: int = 32
    score: Score = "additive"
    aligned: bool = False
    tanh_constant: float | None = 5.0
    temperature: float = 10.0
    groupings: int = 1
    placements: int = 4
    learning_rate: float = 0.1
    decay: float = 0.95
    decay_every: int = 50
    decay_from: int = 400
    clip: float | None = 1.0
    noise: float = 0.5
    noise_until: int = 750
    baseline: float = 0.9
    pessimistic: bool = True
    late: int | None = 1000
    normalise: bool = False
    entropy: float = 0.0

    def rate(self, update: int) -> float:
        """The learning rate in update number `update`."""
        times = max(0, (update - self.decay_from) // self.decay_every)
        return float(self.learning_rate * self.decay**times)

    def exploration(self, update: int) -> float:
        """Noise in update number `update`."""
        return self.noise if update <= self.noise_until else 0.0


PAPER = HierarchicalSettings()
TUNED = HierarchicalSettings(
    groups=96,
    grouping="structure",
    trust=12.0,
    relu=True,
    hidden=64,
    score="general",
    aligned=True,
    tanh_constant=None,
    temperature=1.0,
    groupings=4,
    placements=3,
    learning_rate=1e-2,
    noise=0.0,
    late=None,
    normalise=True,
)
