"""Instances of the contest on sharding."""

from __future__ import annotations

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.families.iopddl import PUBLISHED, instances
from situate.bench.instances import problem_hash
from situate.bench.rows import RowFile
from situate.bench.run import Bench, LimitShare, Runs
from situate.errors import SituateError
from tests.bench.small import runs
from tests.sharding.problems import content, least_cost, random_problem, write


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "B.json", content(random_problem(0)))
    write(tmp_path / "other.json", content(random_problem(1)))
    (tmp_path / "LICENSE").write_text("")
    return tmp_path


def test_instances_of_the_contest_have_its_figures_and_others_none(folder):
    published, other = instances(folder)
    assert (published.name, published.time_limit) == ("B", 60)
    assert published.reference.value == published.reference.bound == 532_843
    assert (other.name, other.reference, other.time_limit) == ("other", None, None)


def test_no_published_bound_is_above_a_cost():
    assert len(PUBLISHED) == 25
    assert all(
        figures.bound <= figures.best.value <= figures.contest for figures in PUBLISHED.values()
    )
    assert PUBLISHED["P"].best.source.startswith("XLA")
    assert PUBLISHED["C"].best.source == "ASPLOS 2025 contest"


def test_a_row_has_cost_and_bound(folder):
    [row] = Bench(runs(instances(folder)[1], methods=("auto",)), RowFile(), BestKnown()).run()
    least = least_cost(random_problem(1))
    assert (row.feasible, row.objective, row.ops) == (True, "cost", 7)
    assert row.lower_bound <= least == row.value


def test_methods_for_placements_are_refused(folder):
    [row] = Bench(runs(instances(folder)[1]), RowFile(), BestKnown()).run()
    assert not row.feasible
    assert "shardings have the method 'auto'" in row.refused


def test_a_share_of_the_time_needs_a_published_limit(folder):
    shares = Runs(instances(folder)[1:], ["auto"], [LimitShare(0.001)], [0], 1)
    with pytest.raises(SituateError, match=r"other: has no published time limit"):
        list(Bench(shares, RowFile(), BestKnown()).run())


def test_names_do_not_matter_and_every_number_does(tmp_path):
    whole = content(random_problem(0))
    hashes = set()
    for name, limit in (("one", 50), ("two", 50), ("two", 51)):
        whole["problem"] |= {"name": name, "usage_limit": limit}
        folder = tmp_path / f"{name}{limit}"
        folder.mkdir()
        write(folder / "a.json", whole)
        hashes.add(problem_hash(instances(folder)[0].make()))
    assert len(hashes) == 2


def test_a_folder_without_problems_is_refused(tmp_path):
    with pytest.raises(SituateError, match="no problem of the contest in it"):
        instances(tmp_path)
