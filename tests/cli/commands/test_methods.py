"""`situate methods`."""

from __future__ import annotations

import re

import pytest

from situate.solvers import LEARNERS, METHODS


@pytest.fixture
def lines(situate) -> dict[str, str]:
    """The line of each method."""
    return dict(line.split(maxsplit=1) for line in situate("methods").out.splitlines())


# The list is complete.
def test_the_first_column_names_every_method_once(lines):
    assert list(lines) == list(METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_what_it_is(lines, method):
    assert re.search(r"\w+ \w+", lines[method])
    assert "`" not in lines[method]
    assert lines[method].startswith("learns: ") == (method in LEARNERS)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_needs_more_says_how_to_get_it(lines, method):
    assert METHODS[method].extra in lines[method]
    assert ("install" in lines[method]) == bool(METHODS[method].extra)
