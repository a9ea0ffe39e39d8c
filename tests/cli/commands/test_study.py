"""`situate study`: measurements as tables, pictures and rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

METHODS = ("post", "cross_entropy")


@pytest.fixture
def studies(situate, fan, pair) -> list[str]:
    """A study of each method, of the same problem."""
    for method in METHODS:
        arguments = ("--method", method, "--samples", "40", "--study", f"{method}.study")
        situate("plan", fan, "--cluster", pair, *arguments)
    return [f"{method}.study" for method in METHODS]


# Studies are shown, exported and drawn.
def test_a_table_has_a_line_a_study(situate, studies):
    lines = situate("study", "show", *studies).out.splitlines()
    assert len(lines) == 3
    assert all(method in line for method, line in zip(METHODS, lines[1:], strict=True))
    assert all("40 of 40" in line for line in lines[1:])


def test_json_has_the_header_and_the_figures(situate, studies):
    (figures,) = situate("study", "show", studies[0], "--json").json["studies"]
    assert figures["header"]["method"] == "post"
    assert figures["samples"]["count"] == sum(figures["outcomes"].values()) == 40
    assert figures["workers"] == []


def test_every_sample_is_exported(situate, studies):
    rows = list(csv.DictReader(situate("study", "export", studies[0]).out.splitlines()))
    assert [int(row["number"]) for row in rows] == list(range(40))
    assert all((row["seconds"] == "") == (row["outcome"] != "ok") for row in rows)
    assert {row["worker"] for row in rows} == {""}
    situate("study", "export", studies[0], "--out", "rows.csv")
    assert Path("rows.csv").read_text() == situate("study", "export", studies[0]).out


def test_curves_are_drawn(situate, studies):
    pytest.importorskip("matplotlib")
    run = situate("study", "plot", *studies, "--out", "curves.svg")
    assert "wrote curves.svg" in run.err
    assert Path("curves.svg").read_text().startswith("<?xml")


# Bad input is one line.
def test_studies_of_other_problems_are_not_drawn_together(situate, studies, fan):
    pytest.importorskip("matplotlib")
    arguments = ("--method", "post", "--samples", "40", "--study", "other.study")
    situate("plan", fan, "--cluster", "identical:3", *arguments)
    run = situate("study", "plot", studies[0], "other.study", "--out", "curves.svg")
    assert run.status == 2
    assert "other.study: is of cluster 'identical:3" in run.err


@pytest.mark.parametrize("command", ["show", "export"])
def test_what_is_no_study_is_refused(situate, command):
    Path("none.study").write_text("x" * 600)
    run = situate("study", command, "none.study")
    assert run.status == 2
    assert "none.study: not a study; give another file" in run.err


def test_a_command_is_missing(situate):
    assert "Missing command: give 'show', 'plot' or 'export'" in situate("study").err
