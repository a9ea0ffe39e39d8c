"""`situate bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

QUICK = ("--instances", 1, "--time-limits", "0.1", "--threads", 1)
REGAL = ("bench", "regal_zero_cost", *QUICK)


def test_without_a_family_it_lists_them(situate):
    run = situate("bench")
    assert run.status == 0
    assert "regal_zero_cost" in run.out


# A bench resumes from the runs in its file.
def test_it_shows_every_method_and_writes_every_run(situate):
    run = situate(*REGAL, "--methods", "heft,single", "--seeds", 2, "--out", "rows.jsonl")
    assert run.status == 0, run.err
    assert "heft" in run.out
    assert "single" in run.out
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("heft", 0), ("single", 0), ("heft", 1), ("single", 1)
    ]  # fmt: skip
    assert rows[0]["made_by"]["machine"]["cores"] >= 1


def test_the_same_command_makes_no_row_again(situate):
    command = (*REGAL, "--methods", "heft", "--out", "rows.jsonl")
    first = situate(*command)
    rows = Path("rows.jsonl").read_text()
    assert situate(*command).out == first.out
    assert Path("rows.jsonl").read_text() == rows


def test_json_has_the_means_of_every_method(situate):
    [one] = situate(*REGAL, "--methods", "heft,auto", "--json").json["comparison"]
    assert (one["family"], one["time_limit"]) == ("regal_zero_cost", 0.1)
    heft, auto = one["methods"]
    assert (heft["method"], auto["method"]) == ("heft", "auto")
    assert heft["mean"] >= auto["mean"] >= 0


# The table of best-known values changes for the better only.
def test_a_table_of_ones_own_is_made_and_only_improves(situate):
    def values():
        entries = json.loads(Path("known.json").read_text())["entries"]
        return {entry["problem"]: entry["best"]["value"] for entry in entries if entry["best"]}

    assert situate(*REGAL, "--methods", "random", "--best-known", "known.json").status == 0
    before = values()
    assert situate(*REGAL, "--methods", "auto", "--best-known", "known.json").status == 0
    after = values()
    assert len(after) == len(before) > 0
    assert all(after[problem] <= before[problem] for problem in before)


# Bad input stops a bench before its first run.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["regal_zero_kost"], "unknown family 'regal_zero_kost'; did you mean 'regal_zero_cost'?"),
        (["regal_zero_cost", "--methods", "aut"], "unknown method 'aut'; did you mean 'auto'?"),
        (["regal_zero_cost", "--methods", "auto,"], "--methods 'auto,': an empty name"),
        (["regal_zero_cost", "--time-limits", "0"], "must be seconds above zero, got '0'"),
        (["regal_zero_cost", "--time-limits", "1,-1"], "must be seconds above zero, got '-1'"),
        (["regal_zero_cost", "--time-limits", "nan"], "must be seconds above zero, got 'nan'"),
        (["regal_zero_cost", "--time-limits", "soon"], "must be seconds above zero, got 'soon'"),
        (["regal_zero_cost", "--seeds", "0"], "--seeds"),
        (["regal_zero_cost", "--instances", "0"], "--instances"),
        (["regal_zero_cost", "--out", "none/rows.jsonl"], "there is no folder"),
        (["regal_zero_cost", "--out", "/dev/full"], "it must be a file"),
        (["regal_zero_cost", "--out", "a", "--best-known", "a"], "used twice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_line(situate, arguments, message):
    run = situate("bench", *arguments)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1 or "--" in message


def test_a_file_that_may_only_be_read_is_refused_before_anything_runs(situate, monkeypatch):
    Path("rows.jsonl").touch()
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everything
    run = situate(*REGAL, "--out", "rows.jsonl")
    assert run.status == 2
    assert "cannot write 'rows.jsonl': no permission" in run.err


def test_a_corrupt_table_is_refused(situate):
    Path("known.json").write_text("{}")
    run = situate(*REGAL, "--best-known", "known.json")
    assert run.status == 2
    assert "known.json: not a table of best-known values" in run.err


def test_ctrl_c_keeps_the_rows_that_are_there(situate, monkeypatch):
    from situate.bench import run as running

    def interrupted(*arguments):
        if len(Path("rows.jsonl").read_text().splitlines()) == 1:
            import signal

            signal.raise_signal(signal.SIGINT)
        return solved(*arguments)

    solved = running.solve_with
    monkeypatch.setattr("situate.bench.run.solve_with", interrupted)
    monkeypatch.setattr("situate.cli.bench.warm_up", lambda methods: None)
    command = (*REGAL, "--methods", "heft", "--seeds", 3, "--out", "rows.jsonl")
    run = situate(*command)
    assert run.status == 130
    assert "the same command goes on from 'rows.jsonl'" in run.err
    assert "heft" in run.out
    assert len(Path("rows.jsonl").read_text().splitlines()) == 1
    monkeypatch.setattr("situate.bench.run.solve_with", solved)
    assert situate(*command).status == 0
    assert len(Path("rows.jsonl").read_text().splitlines()) == 3
