"""Control edges from the readers of a storage to the op that overwrites it."""

from __future__ import annotations

from situate.torch_capture.graph import readers_without_path


# Control edges exist only where no path of data does.
def test_a_reader_that_data_leads_from_needs_none():
    assert readers_without_path(3, [1], producers=[[], [0], [1], [2]]) == []


def test_a_reader_beside_needs_one():
    assert readers_without_path(3, [0, 1, 2], producers=[[], [0], [0], [1]]) == [2]


def test_no_readers():
    assert readers_without_path(2, [], producers=[[], [0], [1]]) == []
