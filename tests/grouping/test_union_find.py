from __future__ import annotations

from situate.grouping.union_find import UnionFind


def test_a_set_is_named_after_its_lowest_unit():
    sets = UnionFind(6)
    assert sets.merge(4, 2) == 2
    assert sets.merge(5, 4) == 2
    assert sets.merge(5, 1) == 1
    assert sets.roots().tolist() == [0, 1, 1, 3, 1, 1]


def test_merging_what_is_together_changes_nothing():
    sets = UnionFind(3)
    sets.merge(0, 2)
    assert sets.merge(2, 0) == 0
    assert sets.roots().tolist() == [0, 1, 0]
