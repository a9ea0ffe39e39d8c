from __future__ import annotations

from situate.grouping.merging import Merging


def test_a_set_is_named_after_its_lowest_unit():
    merging = Merging(6)
    assert merging.merge(4, 2) == 2
    assert merging.merge(5, 4) == 2
    assert merging.merge(5, 1) == 1
    assert merging.roots().tolist() == [0, 1, 1, 3, 1, 1]


def test_merging_what_is_together_changes_nothing():
    merging = Merging(3)
    merging.merge(0, 2)
    assert merging.merge(2, 0) == 0
    assert merging.roots().tolist() == [0, 1, 0]
