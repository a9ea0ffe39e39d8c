"""Usage lines: what stands alone is said to."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("plan", "{MODEL}"),
        ("explain", "MODEL [PLAN] | PLAN"),
        ("export", "[MODEL] PLAN"),
        ("run", "[MODEL] PLAN"),
        ("verify", "[MODEL] PLAN"),
    ],
)
def test_a_plan_may_stand_alone(situate, command, arguments):
    out = situate(command, "--help").out
    assert out.startswith(f"Usage: situate {command} [OPTIONS] {arguments}\n")
    described = out[: out.index("\nOptions:")]
    assert ("[required]" in described) == (command == "plan")


@pytest.mark.parametrize("command", ["explain", "export", "run", "verify"])
def test_without_arguments_there_is_nothing_to_do(situate, command):
    options = ("--to", "dot", "--out", "out") if command == "export" else ()
    run = situate(command, *options)
    assert (run.status, run.err) == (2, "error: Missing argument: give MODEL, PLAN or both\n")
