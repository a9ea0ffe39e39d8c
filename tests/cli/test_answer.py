"""Answers on stdout."""

from __future__ import annotations

import json
import math

from situate.cli.answer import print_json


def test_numbers_that_json_has_no_word_for_are_null(capsys):
    print_json({"a": math.inf, "b": [math.nan, 1.5], "c": {"d": -math.inf}})
    content = json.loads(capsys.readouterr().out)
    assert content == {"a": None, "b": [None, 1.5], "c": {"d": None}}


def test_names_are_kept_as_they_are_but_shown_escaped(capsys):
    print_json({"name": "\x1b[31m\n"})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert json.loads(out)["name"] == "\x1b[31m\n"
