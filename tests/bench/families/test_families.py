"""Every family: its instances make problems, always the same ones, and have names of their own."""

from __future__ import annotations

import pytest

from situate.bench.families import FAMILIES, Family
from situate.bench.instances import problem_hash


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_instances_have_names_of_their_own(family: Family):
    instances = family.instances()
    assert {instance.family for instance in instances} == {family.name}
    assert len({instance.name for instance in instances}) == len(instances) > 0


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_problem_is_the_same_whenever_it_is_made(family: Family):
    first = family.instances()[0]
    again = family.instances()[0]
    assert problem_hash(first.make()) == problem_hash(again.make())
