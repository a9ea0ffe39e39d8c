"""Claims of Spotlight (Gao, Chen and Li, ICML 2018), by a lecture's slides."""

from __future__ import annotations

from benchmarks.papers import markdown
from benchmarks.papers.claims import claim
from benchmarks.papers.claims.claim import Claim
from benchmarks.papers.tables import Results

CASE = "cifar_cnn/4"
RUN = "situate plan cifar_cnn --cluster k80-4 --method spotlight --settings paper --samples 20000"


def claims(results: Results) -> list[Claim]:
    """The claim that the run on the CIFAR-10 CNN bears on, and what was not run."""
    best, expert = results.mean(CASE, "spotlight", "paper"), results.rule(CASE, "expert")
    return [
        Claim(
            "expert-designed placements are not always the best",
            "Spotlight's mean, `paper`, below the expert's",
            f"{markdown.seconds(best)} s, the expert {markdown.seconds(expert)} s",
            claim.verdict(best < expert),
        ),
        claim.not_measured(
            "the network is split into two parts, each on a GPU",
            "two GPUs with a stretch of the network each after 20,000 samples, `paper`",
            RUN,
        ),
        claim.not_measured(
            "better sample efficiency than the policy gradient method",
            "below ColocRL after as many samples, both `paper`, groups of `prefix`",
            "situate compare cifar_cnn --cluster k80-4 --methods spotlight,colocrl "
            "--settings paper --grouping prefix --samples 2400",
        ),
        claim.not_measured(
            "groups by two-level prefix are better than default co-location groups",
            "Spotlight, `paper`, with `--grouping colocation` above itself without",
            f"{RUN} --grouping colocation",
        ),
    ]
