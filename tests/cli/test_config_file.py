"""Options of a command from a TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.results.plan import Plan


@pytest.fixture
def config(tmp_path: Path):
    """Writes a file of options; returns the option that names it."""

    def write(text: str) -> tuple[str, str]:
        (tmp_path / "run.toml").write_text(text)
        return "--config", "run.toml"

    return write


# A file may group its keys in tables, and options on the command line win.
def test_options_come_from_the_file(situate, model, pair, config):
    options = config(
        f'cluster = "{pair}"\nmethod = "heft"\n'
        '[search]\ntime-limit = 5\nseed = 7\n[output]\nout = "p.json"\njson = true\n'
    )
    run = situate("plan", model, *options)
    assert (run.status, run.json["method"], run.json["seed"]) == (0, "heft", 7)
    assert Plan.read("p.json").value == run.json["value"]


def test_options_on_the_command_line_win(situate, model, pair, config):
    options = config(f'cluster = "{pair}"\nmethod = "heft"\nseed = 7\n')
    run = situate("plan", model, "--json", "--seed", "8", *options, "--method", "single")
    assert (run.json["method"], run.json["seed"]) == ("single", 8)


def test_compare_and_explain_read_files_too(situate, model, pair, config):
    options = config(f'[problem]\ncluster = "{pair}"\n[search]\nevaluations = 20\n')
    assert situate("compare", model, "--methods", "heft", *options).status == 0
    assert situate("explain", model, *options).status == 0


def test_flags_lists_and_numbers_have_their_own_types(situate, config):
    pytest.importorskip("torch")
    options = config(
        'cluster = "k80-2"\nmethod = "single"\nslices = 4\ncheck = false\n'
        'slice-dim = ["0=0", "1=0"]\nout = "p.json"\n'
    )
    run = situate("plan", "tests.branches:build", *options)
    assert run.status == 0, run.err
    assert len(Plan.read("p.json").cut.shares) == 4


# An error names the file, the key and the remedy.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sead = 1", "sead: 'plan' has no such option; did you mean 'seed'?"),
        ("config = 'run.toml'", "config: 'plan' has no such option"),
        ("[serch]\nseed = 1", "[serch]: no such table; did you mean 'search'?"),
        ("seed = 'one'", "seed: must be a whole number, such as 10, got 'one'"),
        ("seed = -1", "seed: must be greater than or equal to 0, got -1"),
        ("seed = true", "seed: must be a string or a number, got True"),
        ("seed = [1]", "seed: must be a string or a number, got [1]"),
        ("time-limit = 0", "time-limit: must be a positive number of seconds, such as 10"),
        ("noise = -0.5", "noise: must be finite and not negative, got -0.5"),
        ("check = 'no'", "check: must be true or false, got 'no'"),
        ("seed = 1\n[search]\nseed = 2", "seed: appears twice in the file"),
        ("seed =", "is not TOML: Invalid value"),
    ],
)
def test_bad_content_is_one_line(situate, model, config, text, message):
    run = situate("plan", model, *config(text))
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert run.err.startswith("error: run.toml: ")
    assert message in run.err


def test_a_value_that_exists_nowhere_is_an_error_of_its_option(situate, model, config):
    run = situate("plan", model, *config("objective = 'speed'"))
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert "unknown objective 'speed'" in run.err


def test_a_file_that_cannot_be_read_is_named(situate, model, tmp_path):
    run = situate("plan", model, "--config", "none.toml")
    assert (run.status, run.err) == (2, "error: none.toml: No such file or directory\n")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    run = situate("plan", model, "--config", "bytes.toml")
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert run.err.startswith("error: bytes.toml: is not TOML: ")


def test_a_search_in_the_file_is_refused_beside_a_plan(situate, model, pair, config):
    situate("plan", model, "--cluster", pair, "--method", "single", "--out", "plan.json")
    options = config(f'cluster = "{pair}"\nmethod = "heft"\n')
    run = situate("explain", model, "plan.json", *options)
    assert run.err == "error: --method: the plan is already made: leave out one of the two\n"
