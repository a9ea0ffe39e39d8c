"""Claims of Post (Gao, Chen and Li, NeurIPS 2018) on its Table 1 and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from benchmarks.lib.record import Target
from research.papers import markdown, published
from research.papers.checks import SOFTMAX, TIE, below, by_case, order
from research.papers.claims import claim
from research.papers.claims.claim import Claim
from research.papers.published import PostRow
from research.papers.tables import Results

REDUCED = ("resnet", "inception_v3", "nmt")
"""Networks of the sentence on 24.0 % to 63.7 %."""

SAME = 0.02
"""The paper's errors of step times around the average."""

HOURS = ("inception_v3/4", 40_000)
"""The row and the steps of the paper's training to the end."""


def claims(results: Results) -> list[Claim]:
    """Those that the runs bear on, `paper` against `paper` where nothing else is said."""
    groups: tuple[Callable[[Results], Iterable[Claim]], ...] = (
        _policy_gradient, _single, _inception, _nmt, _curves, _all_four,
    )  # fmt: skip
    return [statement for make in groups for statement in make(results)]


def targets(results: Results) -> list[Target]:
    """The claims that count; none before all methods have been run in `paper` settings."""
    return claim.targets(claims(results)) if _complete(results) else []


def _complete(results: Results) -> bool:
    wanted = {f"{row.network}/{row.gpus}" for row in published.POST}
    run = {(s, m) for m in SOFTMAX for s in ("paper", "tuned")}
    return wanted <= set(results.cases) and all(
        results.of(case, method, settings) for case in wanted for settings, method in run
    )


def _rows(results: Results, *networks: str) -> list[PostRow]:
    result = [row for row in published.POST if _case(row) in results.cases]
    return [row for row in result if row.network.startswith(networks or ("",))]


def _case(row: PostRow) -> str:
    return f"{row.network}/{row.gpus}"


def _below(results: Results, settings: str, *networks: str) -> dict[str, float]:
    """By row, the fraction by which Post is below the policy gradient in the same settings."""
    return {
        (case := _case(row)): below(
            results.mean(case, "post", settings), results.mean(case, "policy_gradient", settings)
        )
        for row in _rows(results, *networks)
    }


def _policy_gradient(results: Results) -> Iterator[Claim]:
    sentence = "placements for ResNet, Inception-V3 and NMT with 24.0 % to 63.7 % shorter training"
    low, high = published.BELOW_POLICY_GRADIENT
    for settings in ("paper", "tuned"):
        confirmed = f"Post below the policy gradient by that much, both `{settings}`"
        yield claim.between(sentence, confirmed, _below(results, settings, *REDUCED), low, high)
    figures = by_case(results)
    result = [
        figures[_case(row)]["below_paper_policy_gradient"] for row in _rows(results, *REDUCED)
    ]
    ends = f"{markdown.percent(min(result))} to {markdown.percent(max(result))}"
    yield Claim(
        sentence,
        "Post in `tuned` (groups, single devices first) below the policy gradient in `paper` (op "
        "by op)",
        ends,
        "unlike",
    )
    for networks, text, ends_of in (
        ("inception_v3", "39.5 %, 34.6 % and 51.7 % on Inception-V3", (0.346, 0.517)),
        ("nmt", "47.0 %, 47.8 % and 58.9 % on NMT", (0.470, 0.589)),
    ):
        sentence = f"outperforms the policy gradient by {text}"
        confirmed = "from the least to the most of these, both `paper`"
        if fractions := _below(results, "paper", networks):
            yield claim.between(sentence, confirmed, fractions, *ends_of)


def _single(results: Results) -> Iterator[Claim]:
    sentence = "for RNNLM and ResNet, Post is identical to the Single GPU baseline"
    apart = {
        (case := _case(row)): results.mean(case, "post", "paper") / results.rule(case, "single") - 1
        for row in _rows(results, "rnnlm", "resnet")
    }
    confirmed = f"Post, `paper`, within {100 * SAME:.0f} % of one GPU, its error of a time"
    if apart:
        yield claim.between(sentence, confirmed, apart, -SAME, SAME)
    yield Claim(
        sentence,
        "Post, `tuned`, not above one GPU",
        "its first samples put everything on one device",
        "by construction",
    )


def _inception(results: Results) -> Iterator[Claim]:
    rows = [_case(row) for row in _rows(results, "inception_v3")]
    post, other = (
        {case: results.mean(case, method, "paper") for case in rows}
        for method in ("post", "policy_gradient")
    )
    single = {case: results.rule(case, "single") for case in rows}
    yield claim.on_all(
        "for Inception-V3, Post is able to find placements that outperform the Single GPU case",
        "Post, `paper`, below one GPU",
        {case: post[case] < single[case] for case in rows},
    )
    printed = (row for row in published.POST if row.network == "inception_v3")
    wanted = [below(row.post, row.single or 0) for row in printed]
    low, high = min(wanted), max(wanted)
    yield claim.between(
        "1.30, 1.19 and 1.29 s where one GPU takes 1.79, 1.75 and 1.78 s",
        f"Post, `paper`, below one GPU by {markdown.percent(low)} to {markdown.percent(high)}",
        {case: below(post[case], single[case]) for case in rows},
        low,
        high,
    )
    yield claim.on_all(
        "the policy gradient fails to discover a placement that is better than Post or Single GPU",
        "the policy gradient above both, all `paper`",
        {case: other[case] > max(post[case], single[case]) for case in rows},
    )
    case, steps = HOURS
    if case in rows:
        saved = [below(post[case], seconds) for seconds in (single[case], other[case])]
        hours = [steps * s / 3600 for s in (post[case], single[case], other[case])]
        yield Claim(
            "40,000 steps on 4 GPUs in 13.5 hours instead of 20 and 20.5: 32.5 % and 34.1 % saved",
            "Post, `paper`, saves as much against one GPU and the policy gradient",
            "{:.1f} hours instead of {:.1f} and {:.1f}: {} and {}".format(
                *hours, *map(markdown.percent, saved)
            ),
            claim.verdict(saved[0] >= 0.325 and saved[1] >= 0.341),
        )


def _nmt(results: Results) -> Iterator[Claim]:
    rows = [_case(row) for row in _rows(results, "nmt")]
    if not rows:
        return
    expert = {case: results.rule(case, "expert") for case in rows}
    post, other = (
        {case: results.mean(case, method, "paper") for case in rows}
        for method in ("post", "policy_gradient")
    )
    yield claim.on_all(
        "for NMT the Expert method performs the best among all the baselines",
        "the expert below METIS, the policy gradient, PPO and cross-entropy, all `paper`",
        {
            case: expert[case] < min(results.rule(case, "metis"), _others(results, case, "paper"))
            for case in rows
        },
    )
    yield claim.on_all(
        "Post is able to find better placements that outperform the Expert method",
        "Post, `paper`, below the expert",
        {case: post[case] < expert[case] for case in rows},
    )
    yield claim.on_all(
        "while the policy gradient method cannot",
        "the policy gradient, `paper`, above the expert",
        {case: other[case] > expert[case] for case in rows},
    )


def _curves(results: Results) -> Iterator[Claim]:
    wanted = list(reversed(SOFTMAX))
    names = {f"{network}/{gpus}" for network, gpus in published.CURVES}
    first, *others = (f"{network}/{gpus}" for network, gpus in published.CURVES)
    if not names <= set(results.cases):
        return
    result = order(results, first, "paper")
    yield Claim(
        "Fig. 2a: the policy gradient slowest, PPO faster, cross-entropy even faster, Post fastest",
        "means over all samples on ResNet-50, 2, in that order, all `paper`",
        ", ".join(result),
        claim.verdict(result == wanted),
    )
    yield claim.on_all(
        "in a similar vein on deeper networks and more GPUs",
        "the same on ResNet-101, 8 and Inception-V3, 4, which stand for the two",
        {case: order(results, case, "paper") == wanted for case in others},
    )
    curves = [run["mean_curve"] for run in results.of(first, "policy_gradient", "paper")]
    least = min(value for curve in curves for value in curve)
    yield Claim(
        "Fig. 2a: with the policy gradient training times are always longer than 2 seconds",
        "no mean of 60 samples on ResNet-50, 2 below 2 s, `paper`",
        f"down to {markdown.seconds(least)} s",
        claim.verdict(least > 2),
    )


def _all_four(results: Results) -> Iterator[Claim]:
    sentence = "better than policy gradient, PPO and the cross-entropy method alone"
    rows = _rows(results)
    for settings in ("paper", "tuned"):
        holds = {_case(row): _first(results, _case(row), settings) for row in rows}
        yield claim.on_all(
            sentence, f"Post's mean the least of the four alone, all `{settings}`", holds
        )


def _first(results: Results, case: str, settings: str) -> bool:
    """True if Post's mean is below the three others', ties aside."""
    return results.mean(case, "post", settings) < _others(results, case, settings) * (1 - TIE)


def _others(results: Results, case: str, settings: str) -> float:
    """The least mean of the three other methods."""
    return min(results.mean(case, method, settings) for method in SOFTMAX[:-1])
