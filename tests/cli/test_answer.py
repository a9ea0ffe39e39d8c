"""Answers on stdout."""

from __future__ import annotations

import io
import json
import math
import sys

import pytest
from rich.console import Group
from rich.text import Text

from situate.cli.answer import print_json, print_table
from situate.report.tables import name_cell, table


# Any name and number can be printed.
def test_numbers_that_json_has_no_word_for_are_null(capsys):
    print_json({"a": math.inf, "b": [math.nan, 1.5], "c": {"d": -math.inf}})
    content = json.loads(capsys.readouterr().out)
    assert content == {"a": None, "b": [None, 1.5], "c": {"d": None}}


def test_names_are_kept_as_they_are_but_shown_escaped(capsys):
    print_json({"name": "\x1b[31m\n"})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert json.loads(out)["name"] == "\x1b[31m\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_read_back_from_output_of_any_encoding(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(
        "sys.stdout", io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
    )
    print_json({"name": 'µ 漢 🙂 \\ "'})
    sys.stdout.flush()
    assert json.loads(raw.getvalue().decode("utf-8"))["name"] == 'µ 漢 🙂 \\ "'


@pytest.mark.parametrize("is_terminal", [True, False])
def test_no_number_is_cut_off_where_there_is_little_room(capsys, monkeypatch, is_terminal):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    wide_table = table("", "|".join(["device", *["peak memory"] * 20]), range(1, 21))
    wide_table.add_row(name_cell("a-device-of-a-long-name"), *[f"{i},023 MiB" for i in range(20)])
    print_table(Group(Text("memory"), Group(wide_table, Text("limits"))))
    out = capsys.readouterr().out
    assert out.count("peak memory") == 20
    assert [word for word in out.split() if word.endswith(",023")] == [
        f"{i},023" for i in range(20)
    ]
    assert (
        "".join(line[:14].strip() for line in out.splitlines()[2:-1]) == "a-device-of-a-long-name"
    )
