"""Rules of execution: by name, or checked settings."""

from __future__ import annotations

import pytest

from situate.data.rules import RULES, Rules, find_rules
from situate.errors import SituateError

# Settings are checked when rules are made, and unknown names are answered with the nearest.


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"transfers": "Blocking"},
            "unknown transfers 'Blocking'; did you mean 'blocking'",
        ),
        ({"memory": "steps"}, "unknown memory 'steps'; did you mean 'step'"),
        ({"transfers": "atomic"}, "memory must be 'persistent', got 'time'"),
    ],
)
def test_rules_of_ones_own_are_checked(settings, match):
    with pytest.raises(SituateError, match=f"rules 'own': .*{match}"):
        Rules("own", **settings)


def test_rules_are_known_by_name() -> None:
    assert find_rules("regal") is RULES["regal"]
    with pytest.raises(SituateError, match="unknown rules 'regall'; did you mean 'regal'"):
        find_rules("regall")
