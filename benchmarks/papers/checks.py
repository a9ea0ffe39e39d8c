"""The paper's claims for Post's Table 1, and whether the results meet them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from benchmarks.lib.record import Target
from benchmarks.papers import published
from benchmarks.papers.tables import Results

SOFTMAX = ("policy_gradient", "ppo", "cross_entropy", "post")
"""From the worst to the best, by Post's Fig. 2."""

LEAST_BEST = 9
"""Cases, of the paper's 11, on which Post is to have the best mean of the four."""

AS_GOOD = 0.01
"""Fraction by which Post may be above one GPU or the expert."""

FASTER = {"inception_v3": (0.27, 0.32), "nmt": (0.38, 0.57)}
"""Fractions by which the paper's Post is below the better of one GPU and the expert."""

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


def targets(results: Results) -> list[Target]:
    """The targets of the tuned settings as far as they were run, then of the paper's."""
    figures = by_case(results)
    best = sum(bool(figure["best_of_four"]) for figure in figures.values())
    four = Target(
        "tuned Post, best mean of the four softmax methods",
        f"on {LEAST_BEST} of {len(published.POST)} cases",
        f"on {best} of {len(figures)}",
        best >= LEAST_BEST,
    )
    named = list(figures.items())
    return [
        *([four] if figures else []),
        *(_as_good(case, figure) for case, figure in named),
        *(_faster(case, figure) for case, figure in named if _range(case)),
        *(_below_policy_gradient(case, figure) for case, figure in named),
        *(
            _below_ungrouped(case, figure)
            for case, figure in named
            if not math.isnan(figure["below_paper_policy_gradient"])
        ),
        *_orders(results),
    ]


def _as_good(case: str, figure: Mapping[str, float]) -> Target:
    fraction = figure["below_better"]
    return Target(
        f"{case}: tuned Post against the better of one GPU and the expert",
        f"at most {_percent(AS_GOOD)} above",
        _signed(fraction),
        fraction >= -AS_GOOD - TIE,
    )


def _faster(case: str, figure: Mapping[str, float]) -> Target:
    low, high = _range(case)
    fraction = figure["below_better"]
    return Target(
        f"{case}: tuned Post below the better of one GPU and the expert",
        f"{_percent(low)} to {_percent(high)}",
        f"{_signed(fraction)}; the bound allows {_percent(figure['allowed'])}",
        fraction >= low,
    )


def _range(case: str) -> tuple[float, ...]:
    """The paper's, for the cases in which Post beats one GPU and the expert; else empty."""
    return next((FASTER[name] for name in FASTER if case.startswith(name)), ())


def _below_policy_gradient(case: str, figure: Mapping[str, float]) -> Target:
    low, high = published.BELOW_POLICY_GRADIENT
    fraction = figure["below_policy_gradient"]
    return Target(
        f"{case}: tuned Post below the tuned policy gradient",
        f"{_percent(low)} to {_percent(high)}",
        f"{_signed(fraction)}; the bound allows "
        f"{_percent(figure['allowed_below_policy_gradient'])}",
        fraction >= low,
    )


def _below_ungrouped(case: str, figure: Mapping[str, float]) -> Target:
    low, _ = published.BELOW_POLICY_GRADIENT
    fraction = figure["below_paper_policy_gradient"]
    return Target(
        f"{case}: tuned Post below the policy gradient in the paper's settings",
        f"at least {_percent(low)}",
        _signed(fraction),
        fraction >= low,
    )


def _signed(fraction: float) -> str:
    if math.isinf(fraction):
        return "nothing fits"
    return f"{_percent(abs(fraction))} {'below' if fraction >= 0 else 'above'}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def _orders(results: Results) -> Iterator[Target]:
    wanted = list(reversed(SOFTMAX))
    for case in results.cases:
        if len(found := order(results, case, "paper")) == len(wanted):
            yield Target(
                f"{case}: learning curves in the paper's settings, lowest first",
                ", ".join(wanted),
                ", ".join(found),
                found == wanted,
            )


def order(results: Results, case: str, settings: str) -> list[str]:
    """The softmax methods that were run, by the area under their learning curve: the mean over all
    samples, lowest first."""
    area = {
        method: results.mean(case, method, settings, "mean")
        for method in SOFTMAX
        if results.of(case, method, settings)
    }
    return sorted(area, key=area.__getitem__)
