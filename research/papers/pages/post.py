"""The page's part on Post's Table 1 and Fig. 2."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import checks, markdown, published
from research.papers.claims import claim, seeds
from research.papers.claims import post as claims
from research.papers.published import TITLES, PostRow
from research.papers.tables import Results

LINK = 10e9
"""Bytes/s of a link of the K80 presets."""

METHODS = ("policy_gradient", "ppo", "cross_entropy", "post")
HEAD = ("", "", "one GPU", "expert", "METIS", "policy gradient", "PPO", "cross-entropy", "Post")


def table(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/post_table.md."""
    results = Results(content["tables"]["rules"], content["tables"]["runs"])
    rows = [row for row in published.POST if _case(row) in results.cases]
    cases = {_title(row): _case(row) for row in rows}
    result = claims.claims(results)
    return {
        "calibration": _calibration(results, rows),
        "table": markdown.table((*HEAD, "auto", "bound"), _lines(results, rows), 2),
        "claims": claim.table(result),
        "met": claim.counted(result),
        "by_case": _by_case(results, rows),
        "resnet": _resnet(results, rows),
        "resnet50": share_of_bound(results, [row for row in rows if row.network == "resnet50"]),
        "deeper": share_of_bound(results, _deeper(rows)),
        "deeper_post": share_of_bound(results, _deeper(rows), ("post",)),
        "sure": seeds.sure(results, cases, "post", METHODS[:-1]),
        "behind": seeds.behind(results, cases, "post", METHODS[:-1]),
        "ppo": _ppo(results, rows),
        "gradient_ahead": _gradient_ahead(results, rows),
        **_first(results, rows),
        "ruled_out": ruled_out(results, rows),
        "below_ungrouped": _below_ungrouped(results, rows),
        "metis": _metis(results, rows),
        "hours": _hours(results),
    }


def _case(row: PostRow) -> str:
    return f"{row.network}/{row.gpus}"


def _title(row: PostRow) -> str:
    return f"{TITLES[row.network]}, {row.gpus}"


def _calibration(results: Results, rows: Sequence[PostRow]) -> str:
    first = {row.network: row for row in reversed(rows)}
    lines = [
        (
            TITLES[network],
            ", ".join(dict.fromkeys(f"{s:.2f}" for s in published.single_gpu("k80", network)))
            or "OOM",
            markdown.seconds(results.rule(_case(row), "uncalibrated_single")),
            f"{results.rule(_case(row), 'factor'):.3f}",
        )
        for network, row in reversed(first.items())
    ]
    return markdown.table(("network", "published", "roofline", "factor"), lines)


def _lines(results: Results, rows: Sequence[PostRow]) -> Iterator[Sequence[str]]:
    """The paper's line and ours for every case."""
    for row in rows:
        missing = markdown.NONE
        yield (
            f"**{_title(row)}**", "paper", markdown.published(row.single, "OOM"),
            *map(markdown.published, (row.expert, row.metis, row.policy_gradient)),
            missing, missing, markdown.published(row.post), missing, missing,
        )  # fmt: skip
        for settings in markdown.SETTINGS:
            if results.of(_case(row), "post", settings):
                yield _ours(results, _case(row), settings)


def _ours(results: Results, case: str, settings: str) -> Sequence[str]:
    network, single = case.split("/")[0], results.rule(case, "single")
    rules = [
        markdown.fitted(
            results.rule(case, column), single if is_published("k80", network) else None
        )
        for column in ("single", "expert", "metis")
    ]
    learnt = [markdown.spread(results.spread(case, m, settings)) for m in (*METHODS, "auto")]
    bound = markdown.seconds(results.rule(case, "lower_bound"))
    return "", markdown.settings(settings), *rules, *learnt, bound


def is_published(machine: str, network: str) -> bool:
    """True if a network's time on one GPU is the paper's by calibration, or its `OOM` by the length
    of its sentences."""
    return bool(published.single_gpu(machine, network)) or network.startswith("nmt")


def _by_case(results: Results, rows: Sequence[PostRow]) -> str:
    figures = checks.by_case(results)
    head = (
        "", "paper: below one GPU, expert", "ours", "bound allows",
        "paper: below policy gradient", "ours, `paper`", "ours, `tuned`", "Post least of the four",
    )  # fmt: skip
    lines = [
        (
            _title(row),
            markdown.percent(_paper_below(row)),
            markdown.percent(figure["below_better"]),
            markdown.percent(figure["allowed"]),
            markdown.percent(checks.below(row.post, row.policy_gradient)),
            markdown.percent(figure["paper_below_policy_gradient"]),
            markdown.percent(figure["below_policy_gradient"]),
            markdown.yes(bool(figure["best_of_four"])),
        )
        for row in rows
        if (figure := figures.get(_case(row)))
    ]
    return markdown.table(head, lines)


def _below_ungrouped(results: Results, rows: Sequence[PostRow]) -> str:
    """The distance of tuned Post below the policy gradient in the paper's settings, over the
    rows."""
    figures = checks.by_case(results)
    result = [figures[_case(row)]["below_paper_policy_gradient"] for row in rows]
    return f"{markdown.percent(min(result))} to {markdown.percent(max(result))}"


def _first(results: Results, rows: Sequence[PostRow]) -> Mapping[str, str]:
    """On how many rows tuned Post has the least mean of the four, ties aside, and where it is the
    least by the least."""
    margins = {_title(row): _margin(results, _case(row)) for row in rows}
    won = {title: margin for title, margin in margins.items() if margin > 0}
    nearest = min(won, key=won.__getitem__, default=None)
    return {
        "first": f"{len(won)} of {len(rows)}",
        "nearest": f" (on {nearest} by {won[nearest]:.0e} s)" if nearest else "",
        "leaders": _leaders(results, [row for row in rows if _title(row) not in won]),
    }


def _leaders(results: Results, rows: Sequence[PostRow]) -> str:
    """On how many rows each other method has the least mean, in `tuned` settings."""
    least = Counter(
        min(METHODS, key=lambda method: results.mean(_case(row), method, "tuned")) for row in rows
    )
    named = [f"{method.replace('_', ' ')} has it on {k}" for method, k in least.most_common()]
    return ", ".join(named) or "there are none"


def _ppo(results: Results, rows: Sequence[PostRow]) -> str:
    """The fractions by which PPO is below the policy gradient, both in `paper` settings: the least
    and the most."""
    result = [
        checks.below(*(results.mean(_case(row), m, "paper") for m in ("ppo", "policy_gradient")))
        for row in rows
    ]
    return f"{markdown.percent(min(result))} to {markdown.percent(max(result))}"


def _gradient_ahead(results: Results, rows: Sequence[PostRow]) -> str:
    """The rows on which the policy gradient in `tuned` settings is below Post in `paper` ones."""
    ahead = [
        _title(row)
        for row in rows
        if results.mean(_case(row), "policy_gradient", "tuned")
        < results.mean(_case(row), "post", "paper")
    ]
    return markdown.of_rows(ahead, list(map(_title, rows)))


def _margin(results: Results, case: str) -> float:
    """Seconds by which Post's mean is below that of the best other; 0 where they tie."""
    others = (m for m in METHODS if m != "post")
    least = min(results.mean(case, method, "tuned") for method in others)
    margin = least - results.mean(case, "post", "tuned")
    return margin if abs(margin) > checks.TIE * least else 0.0


def _paper_below(row: PostRow) -> float:
    better = row.expert if row.single is None else min(row.single, row.expert)
    return checks.below(row.post, better)


def ruled_out(results: Results, rows: Sequence[PostRow]) -> str:
    """A sentence for every case in which no placement can reach the paper's time."""
    result = [
        f"- {_title(row)} GPUs: the paper's Post is {markdown.percent(wanted)} below; no placement "
        f"can be more than {markdown.percent(allowed)} below here."
        for row in rows
        if (wanted := _paper_below(row)) > (allowed := _allowed(results, _case(row)))
    ]
    return "\n".join([*result, *_no_gradient(results, rows)]) or "- None: the bound allows all."


def _no_gradient(results: Results, rows: Sequence[PostRow]) -> Iterator[str]:
    """Where no placement is as far below the policy gradient as the paper's Post is below its."""
    figures, least = checks.by_case(results), published.BELOW_POLICY_GRADIENT[0]
    never = [
        _title(row)
        for row in rows
        if figures.get(_case(row), {}).get("allowed_below_policy_gradient", least) < least
    ]
    if never:
        yield (
            f"- The paper's Post is {markdown.percent(least)} below the policy gradient at least; "
            "no placement is so far below the mean of the `tuned` one here on "
            f"{markdown.of_rows(never, list(map(_title, rows)))}."
        )


def _allowed(results: Results, case: str) -> float:
    return checks.below(results.rule(case, "lower_bound"), results.better(case))


def _resnet(results: Results, rows: Sequence[PostRow]) -> str:
    """The least and the most that the bound allows on ResNet."""
    result = [_allowed(results, _case(row)) for row in rows if row.network.startswith("resnet")]
    return " to ".join(map(markdown.percent, (min(result), max(result)))) if result else "nothing"


def _deeper(rows: Sequence[PostRow]) -> list[PostRow]:
    return [row for row in rows if row.network in ("resnet101", "resnet200")]


def share_of_bound(
    results: Results, rows: Sequence[PostRow], methods: Sequence[str] = METHODS
) -> str:
    """The range of the improvements of `tuned` runs, as shares of those that the bound allows."""
    result = [
        checks.below(mean, results.better(_case(row))) / _allowed(results, _case(row))
        for row in rows
        for method in methods
        if math.isfinite(mean := results.mean(_case(row), method, "tuned"))
    ]
    ends = dict.fromkeys(map(markdown.percent, (min(result), max(result)))) if result else {}
    return " to ".join(ends) or "nothing"


def _metis(results: Results, rows: Sequence[PostRow]) -> str:
    head = ("", "paper: METIS less one GPU [s]", "10 GB/s move in that time", "all tensors")
    sizes = {str(row["case"]): row["tensor_bytes"] for row in results.rules}
    lines = [
        (
            _title(row),
            f"{row.metis - row.single:.2f}",
            markdown.size((row.metis - row.single) * LINK),
            markdown.size(sizes[_case(row)]),
        )
        for row in rows
        if row.single is not None
    ]
    return markdown.table(head, lines)


def _hours(results: Results) -> str:
    """Hours of training Inception-V3 on 4 GPUs to the end, by the step of each placement."""
    case, steps = claims.HOURS
    lines = [("paper", *(f"{hours:.1f}" for hours in published.HOURS))]
    for settings in markdown.SETTINGS:
        if results.of(case, "post", settings):
            means = (results.mean(case, m, settings) for m in ("policy_gradient", "post"))
            step_seconds = (results.rule(case, "single"), *means)
            lines.append(
                (markdown.settings(settings), *(f"{s * steps / 3600:.1f}" for s in step_seconds))
            )
    return markdown.table(("", "one GPU", "policy gradient", "Post"), lines)


def curves(content: Mapping[str, Any]) -> Mapping[str, str]:
    """Names of text/post_curves.md."""
    results = Results(content["tables"]["rules"], content["tables"]["runs"])
    return {settings: _curves(results, settings) for settings in ("paper", "tuned")}


def _curves(results: Results, settings: str) -> str:
    """Means over all samples and over the last, by method; the lowest in bold."""
    lines = [
        (case, what, *_means(results, case, settings, column))
        for case in (f"{network}/{gpus}" for network, gpus in published.CURVES)
        if results.of(case, "post", settings)
        for what, column in (("all", "mean"), ("last 60", "last_mean"), ("best", "best"))
    ]
    return markdown.table(("", "samples", *(m.replace("_", " ") for m in METHODS)), lines, 2)


def _means(results: Results, case: str, settings: str, column: str) -> list[str]:
    result = [results.mean(case, method, settings, column) for method in METHODS]
    least = min(value for value in result if value == value)
    return [
        f"**{markdown.seconds(v)}**" if v <= least * (1 + checks.TIE) else markdown.seconds(v)
        for v in result
    ]
