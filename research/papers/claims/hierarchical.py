"""Claims of the Hierarchical Planner (Mirhoseini et al., SysML and ICLR 2018) and its poster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from research.papers import markdown, published
from research.papers.checks import below
from research.papers.claims import claim
from research.papers.claims.claim import Claim
from research.papers.published import HierarchicalRow
from research.papers.tables import Results

PRIOR = ("cpu", "single", "expert", "scotch", "mincut")
"""Placements whose best time is the one that the paper reduces."""

SAME = 0.02
"""Fraction within which a time is that of one GPU; Post's error of step times, for want of one."""


def claims(results: Results, scale: Mapping[str, Any]) -> list[Claim]:
    """Those that the runs in `paper` settings bear on."""
    rows = {
        f"{row.network}/{row.gpus}": row
        for row in published.HIERARCHICAL
        if f"{row.network}/{row.gpus}" in results.cases
    }
    return [*_reductions(results, rows), *_baselines(results, rows), *_scale(scale)]


def reduction(results: Results, case: str, settings: str) -> float:
    """The fraction by which the planner's mean is below the best prior placement's."""
    prior = min(results.rule(case, column) for column in PRIOR)
    return below(results.mean(case, "hierarchical", settings), prior)


def published_reduction(row: HierarchicalRow) -> float:
    """The same of the paper's figures."""
    prior = (row.cpu, row.single, row.expert, row.scotch, row.mincut)
    return below(row.hierarchical, min(value for value in prior if value is not None))


def _reductions(results: Results, rows: Mapping[str, HierarchicalRow]) -> Iterator[Claim]:
    result = {case: reduction(results, case, "paper") for case in rows}
    for case, least, sentence, confirmed in (
        (
            "nmt2/2",
            0.606,
            "best prior results are outperformed by 60.6 % for NMT (2-layer)",
            "the planner, `paper`, at least 60.6 % below the best other placement",
        ),
        (
            "nmt4/4",
            0.537,
            "and by 53.7 % for NMT (4-layer)",
            "the planner, `paper`, at least 53.7 % below the best other placement",
        ),
        (
            "inception_v3/2",
            0.163,
            "for Inception-V3 a 16.3 % reduction over placing the model on a single GPU",
            "the planner, `paper`, at least 16.3 % below the best other placement",
        ),
        (
            "nmt8/8",
            -0.049,
            "for NMT (8-layer) a placement that is 4.9 % slower than that of human experts",
            "the planner, `paper`, at most 4.9 % above the best other placement",
        ),
    ):
        value = result[case]
        text = f"{markdown.percent(abs(value))} {'below' if value >= 0 else 'above'}"
        yield Claim(sentence, confirmed, text, claim.verdict(value >= least))
    single = results.rule("rnnlm/2", "single")
    seeds = [run["best"] or math.inf for run in results.of("rnnlm/2", "hierarchical", "paper")]
    near = sum(abs(best / single - 1) <= SAME for best in seeds)
    yield Claim(
        "for ResNet and RNNLM the model learns that it is more efficient to use a single GPU",
        f"every seed on RNNLM within {100 * SAME:.0f} % of one GPU, `paper`; ResNet exceeds one "
        "GPU here",
        f"{near} of {len(seeds)} seeds",
        claim.verdict(near == len(seeds)),
    )


def _baselines(results: Results, rows: Mapping[str, HierarchicalRow]) -> Iterator[Claim]:
    planner = {case: results.mean(case, "hierarchical", "paper") for case in rows}
    least = {
        case: min(results.rule(case, column) for column in ("single", "scotch", "expert"))
        for case in rows
    }
    ahead = [case for case in rows if planner[case] <= least[case]]
    wanted = sum(_least_but_mincut(row) >= row.hierarchical for row in rows.values())
    yield Claim(
        "outperforms TensorFlow's default placements, the Scotch algorithm's and human experts'",
        f"the planner, `paper`, below one GPU, Scotch and the expert, or as low, on {wanted} of "
        f"{len(rows)} rows as in the paper's table; one GPU is taken for the default",
        f"on {len(ahead)} of {len(rows)} rows",
        claim.verdict(len(ahead) >= wanted),
    )
    cases = [case for case in rows if math.isfinite(results.rule(case, "expert"))]
    worse = {
        case: min(results.rule(case, column) for column in ("scotch", "mincut"))
        / results.rule(case, "expert")
        - 1
        for case in cases
    }
    ends = f"{markdown.percent(min(worse.values()))} to {markdown.percent(max(worse.values()))}"
    yield claim.on_all(
        "Scotch and MinCut were significantly worse than human expert baselines",
        "both above the expert at all, wherever that fits",
        {case: value > 0 for case, value in worse.items()},
        f"the better of the two {ends} above",
    )


def _least_but_mincut(row: HierarchicalRow) -> float:
    """The best of the paper's one GPU, Scotch and the expert."""
    return min(value for value in (row.single, row.scotch, row.expert) if value is not None)


def _scale(scale: Mapping[str, Any]) -> Iterator[Claim]:
    (run,) = (row for row in scale["tables"]["searches"] if row["settings"] == "paper")
    yield Claim(
        "scales to computational graphs containing over 80,000 operations",
        "1,000 updates of `paper` settings on such a graph end below the best of the first 60 "
        "samples",
        f"{run['updates']:,} updates in {run['cpu_minutes']:.1f} minutes of CPU; best "
        f"{run['best']:.1f} s, of the first 60 {run['best_of_first_60']:.1f} s",
        claim.verdict(run["best"] < run["best_of_first_60"]),
    )
