"""Traces of networks, which the tests cut in many ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import traces


@pytest.fixture(scope="package", autouse=True)
def _traces_are_shared() -> Iterator[None]:
    """The cuts of a network are of one trace."""
    with traces.shared():
        yield
