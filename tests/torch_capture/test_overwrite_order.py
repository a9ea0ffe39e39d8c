"""Which readers need a control edge before what they read is overwritten."""

from __future__ import annotations

from situate.torch_capture.overwrite_order import unordered


def test_a_reader_that_data_leads_from_needs_none():
    assert unordered(3, [1], producers=[[], [0], [1], [2]]) == []


def test_a_reader_beside_needs_one():
    assert unordered(3, [0, 1, 2], producers=[[], [0], [0], [1]]) == [2]


def test_no_readers():
    assert unordered(2, [], producers=[[], [0], [1]]) == []
