"""A forecast as text."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from situate.data.problem import Problem
from situate.report.forecast import forecast
from situate.report.forecast_table import forecast_table
from situate.report.tables import ONE_STEP
from tests.report.handmade import HOSTILE, chain, schedule
from tests.report.test_error_bar import problem, work
from tests.report.test_forecast import step


def text(op: Problem, placement: list[int], method: str = "") -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(forecast_table(forecast(op, schedule(op, placement), method)))
    return console.export_text()


def row(column: str, name: str) -> list[str]:
    return next(line.split() for line in column.splitlines() if line.split()[:1] == [name])


def test_every_part_of_memory_is_shown():
    output = text(step(), [0] * 4)
    head = next(line for line in output.splitlines() if "weights" in line)
    assert head.split() == [
        *("device", "weights", "gradients", "optimiser", "activations", "received"),
        *("workspace", "peak", "limit", "used", "fits"),
    ]
    assert " ".join(row(output, "a")) == "a 107 B 90 B 200 B 50 B 0 B 3 B 450 B none yes"
    assert "1 more" in output
    assert "It fits." in output


def test_what_is_not_known_has_a_column_of_its_own():
    assert "held all step" in text(step(source="stg"), [0] * 4)
    assert "held all step" not in text(step(), [0] * 4)


def test_too_little_memory_is_said():
    output = text(step(memory=400), [0] * 4)
    assert row(output, "a")[-1] == "no"
    assert "It does not fit: a by 50 B too much." in output


def test_only_a_forecast_for_throughput_says_that_memory_is_that_of_one_step():
    assert f"Memory is {ONE_STEP}." in text(replace(chain(), objective="throughput"), [0] * 3)
    assert ONE_STEP not in text(chain(), [0] * 3)


def test_times_of_the_graph_have_no_range():
    output = text(chain(), [0] * 3, "single")
    assert "step 3.00 s (single)\n" in output
    assert "taken as they are" in output


def test_the_range_says_where_it_comes_from():
    output = text(problem(work("a")), [0])
    assert "; eight times of ten between " in output
    assert "100.0 % from the roofline alone" in output
    assert "0.11 to 6.3 times" in output
    assert "docs/costs.md" in output


def test_hostile_names_have_no_effect():
    output = text(chain(device_names=HOSTILE[:2]), [0, 1, 0])
    assert "two\\nlines" in output
