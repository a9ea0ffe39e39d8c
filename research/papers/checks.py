"""Figures that the claims on Post's Table 1 are made of."""

from __future__ import annotations

import math

from research.papers.tables import Results

SOFTMAX = ("policy_gradient", "ppo", "cross_entropy", "post")
"""From the worst to the best, by Post's Fig. 2."""

TIE = 1e-9
"""Relative difference below which two means are the same."""


def by_case(results: Results) -> dict[str, dict[str, float]]:
    """Figures of each case with tuned runs: fractions below the `better` of one GPU and the expert,
    and below the policy gradient, and the most that the lower bound allows of each; and below the
    policy gradient in the paper's settings, NaN where these were not run."""
    return {case: _figures(results, case) for case in _measured(results)}


def _measured(results: Results) -> list[str]:
    return [case for case in results.cases if results.of(case, "post", "tuned")]


def _figures(results: Results, case: str) -> dict[str, float]:
    post = results.mean(case, "post", "tuned")
    means = [results.mean(case, method, "tuned") for method in SOFTMAX]
    better, bound = results.better(case), results.rule(case, "lower_bound")
    gradient = results.mean(case, "policy_gradient", "tuned")
    return {
        "best_of_four": float(post <= min(m for m in means if m == m) * (1 + TIE)),
        "below_better": below(post, better),
        "allowed": below(bound, better),
        "below_policy_gradient": below(post, gradient),
        "allowed_below_policy_gradient": below(bound, gradient),
        **_below_paper(results, case, post),
    }


def _below_paper(results: Results, case: str, tuned: float) -> dict[str, float]:
    """Post in either settings below the policy gradient in the paper's; NaN if that was not run."""
    post, other = (results.mean(case, m, "paper") for m in ("post", "policy_gradient"))
    return {
        "paper_below_policy_gradient": below(post, other),
        "below_paper_policy_gradient": below(tuned, other),
    }


def below(value: float, other: float) -> float:
    """The fraction by which `value` is below `other`; minus infinity where `value` is infinite."""
    return -math.inf if math.isinf(value) else 1 - value / other


def order(results: Results, case: str, settings: str) -> list[str]:
    """The softmax methods that were run, by the area under their learning curve: the mean over all
    samples, lowest first."""
    area = {
        method: results.mean(case, method, settings, "mean")
        for method in SOFTMAX
        if results.of(case, method, settings)
    }
    return sorted(area, key=area.__getitem__)
