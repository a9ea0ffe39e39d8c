"""Claims of Spotlight (Gao, Chen and Li, ICML 2018), by a lecture's slides."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from research.papers import markdown
from research.papers.claims import claim
from research.papers.claims.claim import Claim
from research.papers.runs import BATCH
from research.papers.tables import Results

CASE = "cifar_tensorflow/4"

NEAR = 1.01
"""Times the best that either of two methods finds, from which on a search has found it."""

Rows = Sequence[Mapping[str, Any]]


def claims(results: Results) -> list[Claim]:
    """The claim that the run on the CIFAR-10 CNN bears on; none without runs in `paper`
    settings."""
    best, expert = results.mean(CASE, "spotlight", "paper"), results.rule(CASE, "expert")
    if math.isnan(best):
        return []
    return [
        Claim(
            "expert-designed placements are not always the best",
            "Spotlight's mean, `paper`, below the expert's",
            f"{markdown.seconds(best)} s, the expert {markdown.seconds(expert)} s",
            claim.verdict(best < expert),
        )
    ]


def long_claims(runs: Rows) -> list[Claim]:
    """Those that searches of the slides' length bear on."""
    own, others, coarse = (
        [run for run in runs if (run["method"], run["settings"]) == which]
        for which in (
            ("spotlight", "paper"),
            ("colocrl", "paper, prefix"),
            ("spotlight", "paper, colocation"),
        )
    )
    split = sum(run["gpus"] == 2 and run["moved_bytes"] > 0 for run in own)
    result = [statistics.fmean(run["best"] for run in of) for of in (own, coarse)]
    best, colocated = map(markdown.seconds, result)
    near = NEAR * min(run["best"] for run in (*own, *others))
    spent, spent_by_others = (_samples_until(near, of) for of in (own, others))
    return [
        Claim(
            "the network is split into two parts, each on a GPU",
            "two GPUs in use in the best placement of every seed",
            f"{split} of {len(own)} seeds",
            claim.verdict(split == len(own)),
        ),
        Claim(
            "better sample efficiency than the policy gradient method",
            "fewer samples than ColocRL until the best is within 1 % of what either finds, groups "
            "of `prefix`",
            f"{spent:,.0f} samples, ColocRL {spent_by_others:,.0f}",
            claim.verdict(spent < spent_by_others),
        ),
        Claim(
            "groups by two-level prefix are better than default co-location groups",
            "Spotlight with `colocation` above itself with `prefix`",
            f"{best} s, with `colocation` {colocated} s",
            claim.verdict(result[0] < result[1]),
        ),
        Claim(
            "20,000 sampled placements within a period of 500 minutes",
            "a set-up of a placement chosen so that they take as long",
            f"{statistics.fmean(run['setup_seconds'] for run in own):.1f} s of set-up",
            "by construction",
        ),
    ]


def _samples_until(seconds: float, runs: Rows) -> float:
    """The mean over runs of the samples until a placement takes no longer; all of those of a run
    without one."""
    counts = []
    for run in runs:
        later = sum(best > seconds for best in run["best_curve"])
        counts.append(min(BATCH * (later + 1), run["samples"]))
    return statistics.fmean(counts)
