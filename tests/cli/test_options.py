"""What the help of the commands says of the options that they share."""

from __future__ import annotations

import re

import pytest


@pytest.mark.parametrize("command", ["plan", "compare", "explain"])
def test_commands_that_plan_offer_to_choose(situate, command):
    out = situate(command, "--help").out
    assert "N|A:B:...|auto" in out
    assert "chain|tree|auto" in out
    assert "PARAMETER|auto" in out


@pytest.mark.parametrize("command", ["convert", "info", "profile"])
def test_commands_that_plan_nothing_offer_no_choice(situate, command):
    out = situate(command, "--help").out
    assert "chain|tree" in out
    assert not re.search(r"\bauto\b", out)
