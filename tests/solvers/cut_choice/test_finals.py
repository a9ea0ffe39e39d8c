"""The last choice among cut steps, and the cuts that collectives would prefer."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate import Cluster, Problem  # noqa: E402
from situate.data.cuts import parse_cuts  # noqa: E402
from situate.solvers.cut_choice.finals import MIN_GAIN, best_plan  # noqa: E402
from situate.torch_capture import trace_step  # noqa: E402
from tests.torch_capture.cuts.cut_steps import language_head  # noqa: E402

STEP = trace_step(language_head, "adam", "step")


def finalists(*texts: str, cluster: str = "h100-8") -> list[Problem]:
    machine = Cluster.find(cluster)
    return [Problem(STEP.graph((), parse_cuts(text.split())), machine) for text in texts]


# Sums of many small pieces take longer than one collective, so that a step with more of them is
# shorter on tools that run collectives.
def test_cuts_that_collectives_prefer_are_named() -> None:
    plan, rival = best_plan(finalists("vocabulary=2 sequence=2", "sequence=4 vocabulary=4"))
    assert str(plan.problem.graph.cuts) == "vocabulary=2, sequence=2"
    assert rival is not None
    assert str(rival.cuts) == "sequence=4, vocabulary=4"
    assert MIN_GAIN < rival.gain < 1


def test_the_best_cuts_by_both_times_have_no_rival() -> None:
    plan, rival = best_plan(finalists("vocabulary=4 sequence=4", "vocabulary=8 sequence=8"))
    assert str(plan.problem.graph.cuts) == "vocabulary=8, sequence=8"
    assert rival is None


# Sums that a whole op reads have no collective, so there is nothing to compare.
def test_cuts_without_collectives_are_no_rival() -> None:
    assert best_plan(finalists("vocabulary=4 sequence=4", "vocabulary=4"))[1] is None


# Links that differ within a node have no collectives, so transfers decide alone.
def test_unequal_links_have_no_rival() -> None:
    names = "vocabulary=2 sequence=2", "sequence=4 vocabulary=4"
    assert best_plan(finalists(*names, cluster="v100-4"))[1] is None
