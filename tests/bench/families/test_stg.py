"""The Standard Task Graph set."""

from __future__ import annotations

import pytest

from situate.bench.families.stg import APPLICATIONS, applications, closed
from situate.errors import ReadError

CHAIN = "2\n0 0 0\n1 3 1 0\n2 4 1 1\n3 0 1 2\n"


@pytest.fixture
def folder(tmp_path):
    """One graph, whose optimum is published for two processors and open for four."""
    (tmp_path / "50").mkdir()
    (tmp_path / "50" / "chain.stg").write_text(CHAIN)
    for processors in (2, 4, 8, 16):
        row = {2: "50/chain.stg,2,7\n", 4: "50/chain.stg,4,6,7\n"}.get(processors, "")
        (tmp_path / f"Case50_{processors}_OPT.csv").write_text(row)
    return tmp_path


def test_rows_with_a_published_optimum_are_instances_that_prove_it(folder):
    [instance] = closed(folder)
    assert instance.name == "chain.stg on 2"
    assert (instance.reference.value, instance.reference.bound) == (7, 7)
    assert instance.make().d == 2


def test_a_table_that_is_missing_is_named(folder):
    (folder / "Case50_8_OPT.csv").unlink()
    with pytest.raises(ReadError, match=r"Case50_8_OPT.csv: no such file"):
        closed(folder)


def test_no_application_has_a_bound_above_its_best_value(tmp_path):
    result = applications(tmp_path)
    assert len(result) == len(APPLICATIONS)
    assert all((i.reference.bound or 0) <= i.reference.value for i in result)
