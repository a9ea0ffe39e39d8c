"""`policy_gradient`: one step along the policy gradient for every K samples.

The update rule that Post (Gao et al., NeurIPS 2018) compares itself with.
"""

from __future__ import annotations

from situate.data.problem import Problem
from situate.solvers.learned.driver import learn
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.softmax_learner import SoftmaxLearner, SoftmaxSettings, softmax_learner
from situate.solvers.search import Search

PAPER = SoftmaxSettings(gradient="plain", cross_entropy=False)
TUNED = SoftmaxSettings(
    gradient="plain",
    cross_entropy=False,
    learning_rate=2.0,
    normalise=True,
    single_first=True,
    grouping="heavy-edge",
    groups=256,
    coarser=((16, 0.15), (64, 0.4)),
)


def run(search: Search) -> None:
    """Learn until the budget ends."""
    learn(search, "policy_gradient", learner)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> SoftmaxLearner:
    """See `Learner` and docs/methods/policy_gradient.md."""
    settings = PAPER if learning.settings == "paper" else TUNED
    return softmax_learner(settings, problem, learning, samples, seed)
