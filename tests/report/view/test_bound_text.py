"""A lower bound in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.report.view.bound_text import ARGUMENTS, NO_BOUND, OF_MEMORY, UNNAMED, bound_text
from tests.report.handmade import chain


def test_it_says_the_bound_and_its_argument() -> None:
    text = bound_text(chain(3), 5.0, 2.0, "load")
    assert text["statement"] == "No plan that fits has a smaller value than 2.00 s."
    assert text["argument"] == ARGUMENTS["load"]


def test_a_bound_of_a_file_has_no_name() -> None:
    assert bound_text(chain(3), 5.0, 2.0, None)["argument"] == UNNAMED


def test_a_bound_on_memory_has_an_argument_of_its_own() -> None:
    problem = replace(chain(3), objective="memory")
    text = bound_text(problem, 500.0, 200.0, "held for the step")
    assert text["argument"] == OF_MEMORY
    assert "200 B" in str(text["statement"])


def test_a_plan_that_does_not_fit_has_none() -> None:
    text = bound_text(chain(3), None, None, None)
    assert (text["statement"], text["argument"]) == ("There is no lower bound.", NO_BOUND)


@pytest.mark.parametrize("name", ["critical path", "window", "joins", "deadline", "split"])
def test_each_bound_has_an_argument(name: str) -> None:
    assert ARGUMENTS[name].endswith(".")
