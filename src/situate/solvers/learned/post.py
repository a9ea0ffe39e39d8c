"""`post`: cross-entropy minimisation joined with proximal policy optimisation.

Gao et al., Post, NeurIPS 2018, Algorithm 1.
"""

from __future__ import annotations

from situate.data.problem import Problem
from situate.solvers.learned.driver import learn
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.softmax_learner import SoftmaxLearner, SoftmaxSettings, softmax_learner
from situate.solvers.search import Search

PAPER = SoftmaxSettings()
TUNED = SoftmaxSettings(
    learning_rate=0.2,
    normalise=True,
    minimisations=10,
    memory=4,
    epsilon=0.05,
    single_first=True,
    grouping="heavy-edge",
    groups=256,
    coarser=((16, 0.15), (64, 0.4)),
)


def run(search: Search) -> None:
    """Learn until the budget ends."""
    learn(search, "post", learner)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> SoftmaxLearner:
    """See `Learner` and docs/methods/post.md."""
    settings = PAPER if learning.settings == "paper" else TUNED
    return softmax_learner(settings, problem, learning, samples, seed)
