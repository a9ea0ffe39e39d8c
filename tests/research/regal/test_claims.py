"""Claims of REGAL, held against records."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from research.papers.claims.claim import Claim
from research.regal import claims

FIGURES = {
    "partition_dfs": -10.0,
    "local_search": -1.0,
    "brkga": 0.0,
    "tuned_brkga": 1.0,
    claims.GAS: 1.5,
    claims.IDRS: -5.0,
    claims.REGAL: 8.0,
}


def comparison(**changes: float) -> dict[str, Any]:
    """A record in which `regal` is as good as in the paper, and changes of improvements."""
    figures = FIGURES | changes
    rows = [
        {
            "method": label,
            "improvement_%": figure,
            "interval_%": 0.1,
            "no_worse_%": 90.0,
            "least_%": -1.0,
            "most_%": 20.0,
            "gap_to_best_known_%": 20.0 - figure,
            "seconds": 1.0,
        }
        for label, figure in figures.items()
    ]
    graph = {label: 100 - figure for label, figure in figures.items()}
    evaluations = [
        {"evaluations": n, "brkga, %": gain, f"{claims.REGAL}, %": gain + 8}
        for n, gain in ((1000, -10.0), (5000, 0.0), (50_000, 5.0))
    ]
    tables = {"methods": rows, "graphs": [graph], "evaluations": evaluations}
    return {"tables": tables}


def verdicts(records: dict[str, Any]) -> dict[str, str]:
    return {claim.sentence: claim.verdict for claim in claims.claims(records)}


def of(records: dict[str, Any], part: str) -> list[Claim]:
    return [statement for statement in claims.claims(records) if part in statement.sentence]


# Claims hold of rows like the paper's, and fail of others.


def test_rows_like_the_papers_meet_its_claims() -> None:
    result = verdicts({f"{name}_paper": comparison() for name in claims.SETS})
    failed = [sentence for sentence, verdict in result.items() if verdict != "yes"]
    assert failed == [
        sentence
        for sentence in failed
        if "GP + DFS" in sentence or "gap" in sentence or sentence.startswith("BRKGA 5K takes")
    ]
    assert len(result) >= 12


def test_a_baseline_ahead_is_named() -> None:
    records = {f"{name}_paper": comparison(local_search=9.0) for name in claims.SETS}
    [claim] = of(records, "outperforms all the baselines")
    assert claim.verdict == "no"
    assert "synthetic: behind local_search" in claim.finding


def test_longer_plain_searches_ahead_of_regal_go_the_other_way() -> None:
    content = comparison()
    content["tables"]["evaluations"][-1]["brkga, %"] = 11.8
    [claim] = of({"real_time_paper": content}, "even with 50K evaluations")
    assert claim.verdict == "no"
    assert claim.finding == "8.0 % against 11.8 %"


@pytest.mark.parametrize(
    ("mean", "least", "most", "verdict"),
    [
        (1.71, 1.0, 2.0, "yes"),
        (2.76, 2.7, 2.77, "no"),
        (0.0, 0.0, 0.0, "no"),
        (1.0, 1.0, 1.0, "no"),
    ],
)
def test_choices_are_neither_uniform_nor_constant(
    mean: float, least: float, most: float, verdict: str
) -> None:
    row = {"choices": "placement", "mean": mean, "least": least, "most": most}
    [claim] = claims.claims({"actions_real_time_paper": {"tables": {"entropy, nats": [row]}}})
    assert claim.verdict == verdict


# Records that are absent, or of other settings, count for nothing.


def test_no_records_test_no_claims() -> None:
    assert claims.claims({}) == []


def test_rows_of_other_settings_are_unlike() -> None:
    row = {"method": "regal, tuned", "improvement_%": 23.8}
    [claim] = claims.claims({"larger_time": {"tables": {"methods": [row]}}})
    assert claim.verdict == "unlike"
