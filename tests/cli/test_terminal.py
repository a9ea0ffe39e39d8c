"""Notes and errors on stderr."""

from __future__ import annotations

import pytest

from situate.cli.terminal import BAD_INPUT, fail, note, working


# Messages are single lines on stderr.
def test_an_error_is_one_line_whatever_it_holds(capsys):
    assert fail("a\nb \x1b[31m\u202e") == BAD_INPUT
    assert capsys.readouterr().err == "error: a\\nb \\x1b[31m\\u202e\n"


def test_a_message_of_endless_names_keeps_its_two_ends(capsys):
    fail(f"op '{'x' * 100_000}' is bad")
    line = capsys.readouterr().err
    assert len(line) < 2000
    assert line.startswith("error: op 'xxx")
    assert line.endswith("xxx' is bad\n")


def test_a_note_goes_to_stderr_alone(capsys):
    note("wrote x")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "wrote x\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_work_is_announced_on_a_terminal_only(capsys, monkeypatch, terminal):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with working("reading [bold]x[/bold]"):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("reading [bold]x[/bold]" in captured.err) == terminal
