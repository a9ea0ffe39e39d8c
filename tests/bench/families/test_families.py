"""Every family: its instances make problems, always the same ones, and have names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.bench.families import FAMILIES, Family
from situate.bench.instances import problem_hash
from situate.errors import SituateError

DATA = Path(__file__).parents[2] / "instances"
COMPLETE = [f for f in FAMILIES.values() if not f.folder or (DATA / f.folder).is_dir()]
NAMES = [family.name for family in COMPLETE]


@pytest.mark.parametrize("family", COMPLETE, ids=NAMES)
def test_instances_have_names_of_their_own(family: Family):
    instances = family.instances(DATA)
    assert {instance.family for instance in instances} == {family.name}
    assert len({instance.name for instance in instances}) == len(instances) > 0


@pytest.mark.parametrize("family", COMPLETE, ids=NAMES)
def test_a_problem_is_the_same_whenever_it_is_made(family: Family):
    first, again = family.instances(DATA)[0], family.instances(DATA)[0]
    assert problem_hash(first.make()) == problem_hash(again.make())


@pytest.mark.parametrize("data", [None, DATA], ids=["no folder", "another folder"])
def test_files_that_are_not_there_are_said_with_where_they_belong(data: Path | None):
    with pytest.raises(SituateError, match=r"family 'stg': .* give --data DIR with a folder 'stg'"):
        FAMILIES["stg"].instances(data)


def test_all_families_but_those_of_files_need_no_folder():
    without = {family.name for family in FAMILIES.values() if not family.folder}
    assert without == {
        "regal_zero_cost", "regal_bandwidth", "unequal", "pipelines", "zoo", "zoo_memory"
    }  # fmt: skip
