"""Completions for a shell."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from situate.cli import main


def shell_variables(*words: str) -> dict[str, str]:
    """The variables of bash when it completes the last word."""
    return {
        "_SITUATE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("situate", *words)),
        "COMP_CWORD": str(len(words)),
    }


# The whole command answers a shell.
def test_a_shell_is_answered() -> None:
    command = [sys.executable, "-m", "situate"]
    environment = os.environ | shell_variables("exp")
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (process.stdout.split(), process.stderr) == (["explain", "export"], "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("exp",), ["explain", "export"]),
        (("plan", "inception_v"), ["inception_v3"]),
        (("run", "rnn"), ["rnnlm"]),
        (("plan", "rnnlm", "--cluster", "k40"), ["k40-2", "k40-4", "k40-8"]),
        (("plan", "rnnlm", "--method", "spot"), ["spotlight"]),
        (("plan", "rnnlm", "--objective", "t"), ["time", "throughput"]),
        (("plan", "rnnlm", "--rules", "d"), ["doppler", "dnn-partitioning"]),
        (("plan", "rnnlm", "--grouping", "he"), ["heavy-edge"]),
        (("plan", "rnnlm", "--settings", "t"), ["tuned"]),
        (("plan", "rnnlm", "--evaluator", "h"), ["hardware"]),
        (("compare", "rnnlm", "--methods", "auto,po"), ["auto,policy_gradient", "auto,post"]),
        (("export", "rnnlm", "--to", "torch"), ["torchtitan"]),
        (("cluster", "show", "k80-"), ["k80-2", "k80-4", "k80-8"]),
        (("bench", "pipelines", "zoo_"), ["zoo_memory"]),
        (("bench", "zoo", "--methods", "auto,brkga_"), ["auto,brkga_mp_ipr"]),
        (("plan", "model.on"), []),
    ],
)
def test_names_that_begin_so_are_proposed(
    words: tuple[str, ...],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in shell_variables(*words).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main()
    out, err = capsys.readouterr()
    assert (sorted(out.split()), err) == (sorted(expected), "")
