"""The page's part on ColocRL's networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import markdown
from research.papers.checks import below
from research.papers.claims import claim
from research.papers.claims import colocrl as claims
from research.papers.published import TITLES
from research.papers.tables import Results

RULES = ("cpu", "single", "expert", "scotch", "mincut")
HEAD = (
    "", "settings", "CPU", "one GPU", "expert", "Scotch", "MinCut", "ColocRL", "below expert",
    "auto", "bound",
)  # fmt: skip


def fill(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/colocrl.md."""
    results = Results(content["tables"]["rules"], content["tables"]["runs"])
    return {
        "table": markdown.table(HEAD, _lines(results), 2),
        "claims": claim.table(result := claims.claims(results)),
        "met": claim.counted(result),
    }


def _lines(results: Results) -> Iterator[Sequence[str]]:
    for case in results.cases:
        title = f"**{TITLES[case.split('/')[0]]}, {case.split('/')[1]}**"
        for settings in markdown.SETTINGS:
            if results.of(case, "colocrl", settings):
                yield title, markdown.settings(settings), *_cells(results, case, settings)
                title = ""


def _cells(results: Results, case: str, settings: str) -> Iterator[str]:
    yield from (markdown.seconds(results.rule(case, column)) for column in RULES)
    mean = results.mean(case, "colocrl", settings)
    yield markdown.spread(results.spread(case, "colocrl", settings))
    yield markdown.percent(below(mean, results.rule(case, "expert")))
    yield markdown.spread(results.spread(case, "auto", settings))
    yield markdown.seconds(results.rule(case, "lower_bound"))
