"""Claims of ColocRL (Mirhoseini et al., ICML 2017), by a review and by others' slides."""

from __future__ import annotations

from benchmarks.papers.claims import claim
from benchmarks.papers.claims.claim import Claim

COMPARE = (
    "situate compare {} --methods expert,scotch,mincut,colocrl --settings paper --samples 2400"
)


def claims() -> list[Claim]:
    """None of them was run."""
    return [
        claim.not_measured(
            "on Inception-V3 an improvement of 19.7 % compared to the expert's placement",
            "ColocRL, `paper`, at least 19.7 % below the expert",
            COMPARE.format("inception_v3 --cluster k40-4"),
        ),
        claim.not_measured(
            "placements about 3.5 times as fast as usual ones",
            "ColocRL, `paper`, that far below the partitioners on NMT",
            COMPARE.format("nmt2 --cluster k40-2"),
        ),
    ]
