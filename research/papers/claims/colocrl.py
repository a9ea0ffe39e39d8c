"""Claims of ColocRL (Mirhoseini et al., ICML 2017), by a review and by others' slides."""

from __future__ import annotations

from collections.abc import Iterator

from research.papers import markdown
from research.papers.checks import below
from research.papers.claims import claim
from research.papers.claims.claim import Claim
from research.papers.tables import Results

IMPROVED = 0.197
"""The fraction below the expert's placement on Inception-V3."""

TIMES = 3.5
"""Times as fast as usual placements."""

PARTITIONERS = ("scotch", "mincut")


def claims(results: Results) -> list[Claim]:
    """Those that runs in `paper` settings bear on."""
    return [*_improved(results), *_faster(results)]


def _improved(results: Results) -> Iterator[Claim]:
    rows = [case for case in results.cases if case.startswith("inception_v3/")]
    result = {
        case: below(results.mean(case, "colocrl", "paper"), results.rule(case, "expert"))
        for case in rows
    }
    if result:
        most = markdown.percent(max(result.values()))
        yield Claim(
            "on Inception-V3 an improvement of 19.7 % compared to the expert's placement",
            "ColocRL, `paper`, at least 19.7 % below the expert on one of the rows",
            f"{most} at most",
            claim.verdict(max(result.values()) >= IMPROVED),
        )


def _faster(results: Results) -> Iterator[Claim]:
    result = {
        case: min(results.rule(case, rule) for rule in PARTITIONERS)
        / results.mean(case, "colocrl", "paper")
        for case in results.cases
    }
    if result:
        yield Claim(
            "placements about 3.5 times as fast as usual ones",
            "ColocRL, `paper`, that much faster than the better of Scotch and MinCut on one of the "
            "rows",
            f"{max(result.values()):.2f} times at most",
            claim.verdict(max(result.values()) >= TIMES),
        )
