"""From what the user typed to a graph."""

from __future__ import annotations

import pytest

from situate.cli.inputs import read_model
from situate.graph import Graph
from tests.cli.conftest import diamond


def test_what_a_users_function_prints_stays_out_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def chatty(*_: object) -> Graph:
        print("downloading")
        return diamond()

    monkeypatch.setattr("situate.cli.inputs.find_model", chatty)
    read_model("mine:step")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "downloading\n")
