"""The command line as a whole."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import situate as package

COMMANDS = (
    *("plan", "compare", "bench", "explain", "info", "convert", "cluster", "export", "methods"),
    *("profile", "run", "study", "train", "verify"),
)
SGD = "sgd, but a network of the zoo has its own"
OF_PLAN = "Default: the plan's"


# Help is complete, and choices stand where a command can make them.
def test_help_names_every_command_and_exit_status(situate):
    run = situate("--help")
    assert run.status == 0
    for command in COMMANDS:
        assert f"  {command} " in run.out
    message = " ".join(run.out.split()).partition("Exit status: ")[2]
    for status in (0, 1, 2, 3, 4, 130):
        assert f" {status} " in f" {message}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(situate, command):
    run = situate(command, "--help")
    assert run.status == 0
    assert run.out.startswith("Usage:")


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


@pytest.mark.parametrize(
    ("command", "message"),
    [
        *((name, SGD) for name in ("plan", "compare", "info", "convert", "profile")),
        *((name, OF_PLAN) for name in ("export", "run", "verify")),
        ("explain", OF_PLAN),
        ("explain", SGD),
    ],
)
def test_every_optimizer_has_a_default(situate, command, message):
    assert message in " ".join(situate(command, "--help").out.split())


@pytest.mark.parametrize("words", [(), ("plan",), ("cluster", "list")])
def test_h_is_help(situate, words):
    run = situate(*words, "-h")
    assert run.status == 0
    assert run.out == situate(*words, "--help").out


def test_no_command_shows_the_help(situate):
    assert situate().out == situate("--help").out


def test_version(situate):
    assert situate("--version").out == f"situate {package.__version__}\n"


def test_methods_are_listed(situate):
    lines = situate("methods").out.splitlines()
    assert [line.split()[0] for line in lines] == list(package.METHODS)


# Errors of reading and writing are one line.
def test_an_input_that_is_too_deep_says_so(situate, monkeypatch):
    def fails(*_, **__):
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr("situate.cli.app", fails)
    run = situate("methods")
    assert run.status == 2
    assert run.err == "error: the input is too deeply nested: maximum recursion depth exceeded\n"


COMMAND = f"{sys.executable} %s -c 'import sys; from situate.cli import main; sys.exit(main())'"


@pytest.mark.parametrize("buffering", ["", "-u"])
@pytest.mark.parametrize("target", ["| true", "> /dev/full"])
def test_an_output_that_breaks_is_no_traceback(buffering, target):
    command = f"{COMMAND % buffering} cluster list {target}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in run.stderr
    assert "Exception" not in run.stderr


def test_a_full_disk_is_an_error():
    command = f"{COMMAND % ''} cluster list > /dev/full"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == "error: output: No space left on device\n"


BREAKS = (
    "import sys, situate.cli.failures as f; sys.exit(f._broken(BrokenPipeError(32, 'Broken pipe')))"
)


@pytest.mark.parametrize(
    ("reader", "message"), [("cat", "error: output: Broken pipe\n2\n"), ("true", "1\n")]
)
def test_a_broken_pipe_is_silent_only_where_it_is_the_outputs(reader, message):
    command = f'(sleep 0.5; {sys.executable} -c "{BREAKS}"; echo $? >&2) | {reader}'
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.stderr == message


# Usage lines show that a plan may stand alone.
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
