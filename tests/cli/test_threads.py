"""Errors that threads of libraries raise while a command runs."""

from __future__ import annotations

import errno
import threading

import pytest

from situate.cli.threads import reported


def raising(error: BaseException) -> None:
    def run() -> None:
        raise error

    thread = threading.Thread(target=run, name="writer")
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError(errno.ENOSPC, "No space", "a\nb"), r"a\nb: No space"),
        (ValueError("so"), "ValueError: so"),
        (KeyError(), "KeyError"),
    ],
)
def test_an_error_is_one_line(error, said, capsys):
    with reported() as lines:
        raising(error)
    assert capsys.readouterr().err == f"error: writer: {said}\n"
    assert len(lines) == 1


def test_who_ends_a_thread_is_not_reported(capsys):
    with reported() as lines:
        raising(SystemExit())
    assert (lines, capsys.readouterr().err) == ([], "")


@pytest.mark.parametrize(("status", "found"), [(0, 2), (3, 3), (4, 4)])
def test_the_command_does_its_work_and_its_status_says_so(situate, monkeypatch, status, found):
    def command(*_, **__):
        raising(OSError(errno.ENOSPC, "No space left on device"))
        print("the answer")
        return status

    monkeypatch.setattr("situate.cli.app", command)
    run = situate("methods")
    assert (run.status, run.out) == (found, "the answer\n")
    assert run.err == "error: writer: No space left on device\n"
