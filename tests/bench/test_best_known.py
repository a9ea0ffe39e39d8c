"""The table of best-known values."""

from __future__ import annotations

import json

import pytest

from situate.bench.best_known import PACKAGED, BestKnown, Entry, Finding
from situate.bench.families import FAMILIES
from situate.bench.instances import problem_hash
from situate.errors import ReadError, SituateError
from tests.bench.small import entry


# Improvements, within rounding.
def test_only_what_is_better_is_kept():
    table = BestKnown([entry(best=10, bound=6)])
    assert not table.learn(entry(best=11, bound=5))
    assert table.learn(entry(best=9, bound=5))
    assert table.learn(entry(bound=7))
    [remaining] = table.entries.values()
    assert (remaining.best.value, remaining.bound.value) == (9, 7)


def test_it_says_who_found_a_value():
    table = BestKnown([entry(best=10, by="heft"), entry(best=9, by="auto")])
    assert table.entries["f00"].best.by == "auto"


def test_a_difference_that_rounding_makes_improves_nothing():
    table = BestKnown([entry(best=10.0, bound=6.0)])
    assert not table.learn(entry(best=10.0 - 1e-12, bound=6.0 + 1e-12))


def test_values_in_print_are_rounded_and_so_neither_beaten_nor_refused_by_little():
    printed = Entry("f00", "small", "fork", Finding(17.7899, "a paper"))
    table = BestKnown([printed, entry(bound=17.78991)])
    assert not table.learn(entry(best=17.78986, bound=17.78991))
    assert table.entries["f00"].best.by == "a paper"


# Values that contradict a bound or are no values.
@pytest.mark.parametrize("wrong", [entry(best=9, bound=9.5), entry(best=5)])
def test_a_value_below_a_bound_is_refused_by_name(wrong):
    table = BestKnown([entry(best=10, bound=6)])
    with pytest.raises(SituateError, match=r"small: fork: the best value .* is below the bound"):
        table.learn(wrong)
    assert table.entries["f00"] == entry(best=10, bound=6)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_what_is_no_value_is_refused_by_name(value):
    with pytest.raises(SituateError, match="small: fork: the best value must be a number"):
        BestKnown([entry(best=value)])


# The file, and the table that comes with situate.
def test_a_table_that_was_written_is_read_again(tmp_path):
    table = BestKnown([entry(best=10, bound=6)])
    table.write(tmp_path / "known.json")
    assert BestKnown.read(tmp_path / "known.json").entries == table.entries


def test_the_table_that_comes_with_situate_has_every_problem_that_is_made():
    entries = {(e.family, e.instance) for e in BestKnown.read(PACKAGED).entries.values() if e.best}
    items = [family for family in FAMILIES.values() if not family.folder]
    assert {(item.family, item.name) for family in items for item in family.instances()} <= entries


@pytest.mark.parametrize("family", ["unequal", "pipelines"])
def test_the_table_that_comes_with_situate_knows_the_problems_as_they_are(family):
    """Where a problem has changed, `situate bench FAMILY --best-known` with the table's own path
    finds values for it."""
    table = BestKnown.read(PACKAGED).entries
    problems = {i.name: problem_hash(i.make()) for i in FAMILIES[family].instances()}
    assert [name for name, problem in problems.items() if problem not in table] == []


def _content(**changes):
    of_one = {"problem": "f00", "family": "small", "instance": "fork", "best": None, "bound": None}
    file = {"format": "situate-best-known", "version": 1, "entries": [of_one]} | changes
    return json.dumps(file)


CORRUPT = {
    "not JSON": ("{", "not valid JSON|truncated"),
    "another format": (_content(format="situate-plan"), "situate-plan"),
    "another version": (_content(version=2), "version 2; this situate reads version 1"),
    "an unknown field": (_content(entries=[{"value": 3}]), r"entries\[0\]"),
    "nothing": ("", "empty"),
}


@pytest.mark.parametrize(("text", "message"), CORRUPT.values(), ids=CORRUPT)
def test_a_corrupt_table_is_refused_with_its_path_and_place(tmp_path, text, message):
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(ReadError, match=message) as raised:
        BestKnown.read(path)
    assert str(raised.value).startswith(f"{path}: not a table of best-known values: ")
    assert "\n" not in str(raised.value)


def test_a_table_that_contradicts_itself_is_refused(tmp_path):
    path = tmp_path / "known.json"
    findings = {"best": {"value": 1.0, "by": "x"}, "bound": {"value": 2.0, "by": "y"}}
    of_one = {"problem": "f00", "family": "small", "instance": "fork"} | findings
    path.write_text(_content(entries=[of_one]))
    with pytest.raises(ReadError, match=r"small: fork: the best value 1.0 \(x\) is below"):
        BestKnown.read(path)
