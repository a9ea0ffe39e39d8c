from __future__ import annotations

from situate.grouping.labels import unit_labels
from tests.grouping.cases import problems


def test_a_unit_has_the_label_of_its_first_op():
    """Ops j and j + 6 are a unit."""
    keys = ["a", "b", "a", "c", "b", "d", *"xyzxyz"]
    assert unit_labels(problems()["colocated"], keys).tolist() == [0, 1, 0, 2, 1, 3]
