"""Fixtures of the tests: a small model, captured once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from situate.runtime.subject import Subject


@pytest.fixture(scope="session")
def subject() -> Subject:
    """A training step with Adam."""
    pytest.importorskip("torch")
    from situate.runtime.subject import find_subject

    return find_subject("tests.profiling.models:mlp", "adam")
