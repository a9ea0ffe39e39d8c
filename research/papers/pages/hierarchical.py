"""The page's part on the Hierarchical Planner's table and on Spotlight's benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import markdown, published
from research.papers.checks import below
from research.papers.claims import claim
from research.papers.claims import hierarchical as claims
from research.papers.claims import spotlight as spotlight_claims
from research.papers.pages.post import is_published
from research.papers.published import TITLES, HierarchicalRow
from research.papers.tables import APART, Results

PEAK = 4.29e12
"""FLOP/s of a Tesla K40, single precision (NVIDIA's datasheet)."""

RULES = ("cpu", "single", "expert", "scotch", "mincut")
SETTINGS = ("tuned", "paper")
MANY, OFTEN = 0.1, 0.45
HEAD = ("", "", "CPU", "one GPU", "expert", "Scotch", "MinCut", "planner", "Post", "auto", "bound")


def hierarchical(content: Mapping[str, Any], scale: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/hierarchical_table.md."""
    results = Results(content["tables"]["rules"], content["tables"]["runs"])
    rows = [row for row in published.HIERARCHICAL if _case(row) in results.cases]
    return {
        "calibration": _calibration(results, rows),
        "table": markdown.table(HEAD, _lines(results, rows), 2),
        "failing": "\n".join(failing(results, rows)),
        "claims": claim.table(result := claims.claims(results, scale)),
        "met": claim.counted(result),
        "reductions": _reductions(results, rows),
        **_planner(results, rows),
    }


def _reductions(results: Results, rows: Sequence[HierarchicalRow]) -> str:
    """The paper's last column and ours."""
    lines = [
        (
            f"{TITLES[row.network]}, {row.gpus}",
            markdown.percent(claims.published_reduction(row)),
            *(markdown.percent(claims.reduction(results, _case(row), s)) for s in SETTINGS),
        )
        for row in rows
    ]
    return markdown.table(("", "paper", "ours, `tuned`", "ours, `paper`"), lines)


def _planner(results: Results, rows: Sequence[HierarchicalRow]) -> Mapping[str, str]:
    """Figures of the text on the planner."""
    tuned = {_case(row): results.mean(_case(row), "hierarchical", "tuned") for row in rows}
    post = [below(results.mean(case, "post", "tuned"), mean) for case, mean in tuned.items()]
    eight = below(tuned["nmt8/8"], results.better("nmt8/8"))
    nmt = [row for row in rows if row.network.startswith("nmt")]
    times = [
        results.mean(_case(row), "hierarchical", "paper") / results.rule(_case(row), "expert")
        for row in nmt
    ]
    shares = [
        run["failures"] / run["samples"]
        for row in nmt
        for run in results.of(_case(row), "hierarchical", "paper")
    ]
    alone = [
        results.mean(case, "hierarchical", "paper") / results.rule(case, "single")
        for case in ("inception_v3/2", "rnnlm/2")
    ]
    allowed = [
        below(results.rule(case, "lower_bound"), results.rule(case, "expert"))
        for case in ("nmt2/2", "nmt4/4")
    ]
    return {
        "near": " and ".join(f"{share:.2f}" for share in alone),
        "allowed": " and ".join(map(markdown.percent, allowed)),
        "post_ahead": f"{markdown.percent(min(post))} to {markdown.percent(max(post))}",
        "eight": markdown.percent(eight),
        "times": f"{min(times):.1f} to {max(times):.1f}",
        "share": f"{100 * OFTEN:.0f} %",
        "often": f"{sum(share >= OFTEN for share in shares)} of {len(shares)}",
    }


def _case(row: HierarchicalRow) -> str:
    return f"{row.network}/{row.gpus}"


def _calibration(results: Results, rows: Sequence[HierarchicalRow]) -> str:
    flops = {str(row["case"]): row["flops"] for row in results.rules}
    lines = [
        (
            TITLES[row.network],
            markdown.published(row.single, "OOM"),
            markdown.seconds(results.rule(_case(row), "uncalibrated_single")),
            f"{results.rule(_case(row), 'factor'):.3f}",
            markdown.seconds(flops[_case(row)] / PEAK),
        )
        for row in rows
    ]
    return markdown.table(("network", "published", "roofline", "factor", "at the peak"), lines)


def _lines(results: Results, rows: Sequence[HierarchicalRow]) -> Iterator[Sequence[str]]:
    for row in rows:
        figures = (row.expert, row.scotch, row.mincut, row.hierarchical)
        yield (
            f"**{TITLES[row.network]}, {row.gpus}**", "paper", markdown.published(row.cpu),
            markdown.published(row.single, "OOM"), *map(markdown.published, figures),
            *[markdown.NONE] * 3,
        )  # fmt: skip
        yield _ours(results, _case(row), "tuned")
        for settings in APART:
            if results.of(_case(row), "hierarchical", settings):
                yield _learnt_alone(results, _case(row), settings)


def _learnt_alone(results: Results, case: str, settings: str) -> Sequence[str]:
    """The learners' cells alone: the others are those of the line above."""
    learnt = [results.spread(case, method, settings) for method in ("hierarchical", "post")]
    rules, rest = [markdown.NONE] * len(RULES), [markdown.NONE] * 2
    return "", markdown.settings(settings), *rules, *map(markdown.spread, learnt), *rest


def _ours(results: Results, case: str, settings: str) -> Sequence[str]:
    published_single = results.rule(case, "single") if _is_published(results, case) else None
    rules = [markdown.fitted(results.rule(case, column), published_single) for column in RULES]
    learnt = [
        markdown.spread(results.spread(case, "hierarchical", settings)),
        markdown.spread(results.spread(case, "post", "tuned")),
        markdown.spread(results.spread(case, "auto", "tuned")),
    ]
    bound = markdown.seconds(results.rule(case, "lower_bound"))
    return "", markdown.settings(settings), *rules, *learnt, bound


def _is_published(results: Results, case: str) -> bool:
    """True if its time on one GPU is the paper's, or it exceeds one GPU as in the paper."""
    network = case.partition("/")[0]
    fits = results.rule(case, "single") < math.inf
    return is_published("k40", network) and fits == bool(published.single_gpu("k40", network))


def failing(results: Results, rows: Sequence[HierarchicalRow]) -> Iterator[str]:
    """The planner's rows with seeds of which more than `MANY` of the samples failed."""
    for row in rows:
        for settings in SETTINGS:
            runs = results.of(_case(row), "hierarchical", settings)
            shares = [run["failures"] / run["samples"] for run in runs]
            many = [markdown.percent(share) for share in shares if share > MANY]
            if many:
                result = (
                    f"{len(many)} of {len(runs)} (`{settings}`): {', '.join(many)} of the samples"
                )
                yield f"- {TITLES[row.network]}, {row.gpus} GPUs: {result}."


def spotlight(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/spotlight_cifar.md."""
    results = Results(content["tables"]["rules"], content["tables"]["runs"])
    head = ("", "settings", "best of the first 60", "best", "mean of the last 60")
    learnt = [
        (method, markdown.settings(settings), *_learnt(results, case, method, settings))
        for case in results.cases
        for settings in SETTINGS
        for method in ("spotlight", "ppo")
        if results.of(case, method, settings)
    ]
    return {
        "rules": _rules(results),
        "table": markdown.table(head, learnt, 2),
        "claims": _spotlight_claims(results),
        **{f"{settings}_reached": _reached(results, settings) for settings in SETTINGS},
    }


def _spotlight_claims(results: Results) -> str:
    """The claims' table, or the command that measures it."""
    result = spotlight_claims.claims(results)
    if not result:
        return (
            "The slides' claim on expert-designed placements is not measured yet: "
            "`python -m research.papers.spotlight_cifar --settings paper`."
        )
    return f"The slides claim:\n\n{claim.table(result)}"


def _reached(results: Results, settings: str) -> str:
    """The number of Spotlight's seeds that came down to one GPU."""
    result = [
        (run["best"], results.rule(case, "single"))
        for case in results.cases
        for run in results.of(case, "spotlight", settings)
    ]
    reached = sum(best is not None and best <= single for best, single in result)
    return f"{reached} of {len(result)}"


def _rules(results: Results) -> str:
    columns = ("single", "expert", "lower_bound")
    lines = [
        (
            *(markdown.seconds(results.rule(case, column)) for column in columns),
            markdown.spread(results.spread(case, "auto", "tuned")),
        )
        for case in results.cases
    ]
    return markdown.table(("one GPU", "expert", "bound", "auto"), lines)


def _learnt(results: Results, case: str, method: str, settings: str) -> list[str]:
    columns = ("first_best", "best", "last_mean")
    return [markdown.spread(results.spread(case, method, settings, c)) for c in columns]
