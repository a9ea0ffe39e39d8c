"""The smallest limit around a call holds, and none where there is none."""

from __future__ import annotations

from situate.host.thread_limit import at_most, thread_limit


def test_the_smallest_limit_around_holds():
    assert thread_limit(8) == 8
    with at_most(3):
        assert (thread_limit(8), thread_limit(2)) == (3, 2)
        with at_most(5):
            assert thread_limit(8) == 3
        with at_most(1):
            assert thread_limit(8) == 1
        assert thread_limit(8) == 3
    assert thread_limit(8) == 8
