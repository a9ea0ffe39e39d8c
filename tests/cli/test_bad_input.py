"""Bad input: one `error:` line on stderr, exit status 2, nothing else said or written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

HOSTILE = 'a"b\n\x1b[31m</script>\u202e'


def graph_json(**changes: Any) -> dict[str, Any]:
    """A graph of two ops in situate's own format."""
    return {
        "format": "situate-graph",
        "version": 1,
        "name": "two",
        "ops": [{"name": "a", "seconds": {"*": 1.0}}, {"name": "b", "seconds": {"*": 1.0}}],
        "tensors": [{"name": "t", "producer": "a", "size": 8, "consumers": ["b"]}],
    } | changes


def op(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "seconds": {"*": 1.0}} | changes


def tensor(name: str, producer: str, consumer: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "producer": producer, "size": 8, "consumers": [consumer]} | changes


B = {"name": "b", "seconds": {"*": 1.0}}

BAD_GRAPHS = {
    "a cycle": (
        graph_json(tensors=[tensor("t", "a", "b"), tensor("u", "b", "a")]),
        "cycle",
    ),
    "a self-loop": (graph_json(tensors=[tensor("t", "a", "a")]), "'a'"),
    "two ops of one name": (graph_json(ops=[op(), op()], tensors=[]), "'a'"),
    "a dangling tensor": (graph_json(tensors=[tensor("t", "a", "nobody")]), "nobody"),
    "a negative time": (graph_json(ops=[op(seconds={"*": -1}), B]), "'a'"),
    "a negative size": (graph_json(tensors=[tensor("t", "a", "b", size=-8)]), "t"),
    "a size beyond 2^53": (graph_json(tensors=[tensor("t", "a", "b", size=2**62)]), "t"),
    "no ops": (graph_json(ops=[], tensors=[]), "no ops"),
    "a group on two devices": (
        graph_json(
            ops=[op(group="g", device="gpu0"), B | {"group": "g", "device": "gpu1"}], tensors=[]
        ),
        "'g'",
    ),
    "an unknown device": (graph_json(ops=[op(device="gpu7"), B]), "gpu7"),
    "an op that nothing can run": (graph_json(ops=[op(seconds={"tpu": 1.0}), B]), "'a'"),
    "an op that nothing can hold": (graph_json(ops=[op(persistent=10**9), B]), "'a'"),
    "hostile names": (graph_json(ops=[op(name=HOSTILE), op(name=HOSTILE)], tensors=[]), "script"),
}

BAD_BYTES = {
    "a missing comma": b'{"format": "situate-graph" "version": 1}',
    "half a file": json.dumps(graph_json()).encode()[:60],
    "no UTF-8": b'{"format": "situate-graph", "name": "\xff\xfe"}',
    "deep nesting": b"[" * 100_000,
    "a key twice": json.dumps(graph_json()).encode().replace(b'"ops"', b'"name": "x", "ops"'),
    "NaN": json.dumps(graph_json(ops=[op(seconds={"*": float("nan")}), B])).encode(),
    "infinity": json.dumps(graph_json(ops=[op(seconds={"*": float("inf")}), B])).encode(),
    "1e999": json.dumps(graph_json()).encode().replace(b"1.0", b"1e999"),
    "nothing": b"",
    "gzip cut short": b"\x1f\x8b\x08\x00",
    "what no reader knows": b"once upon a time\n",
}

DEVICE = '[[devices]]\nname = "gpu"\ncount = 2\n'
LINK = '[[links]]\nfrom = "*"\nto = "*"\nbandwidth = 1e6\n'

BAD_CLUSTERS = {
    "no devices": ('name = "x"\ndevices = []\n', "no devices"),
    "zero devices": (f'name = "x"\n{DEVICE.replace("2", "0")}', "devices"),
    "zero memory": (f'name = "x"\n{DEVICE}memory = 0\n{LINK}', "memory"),
    "negative memory": (f'name = "x"\n{DEVICE}memory = "-1 GiB"\n{LINK}', "memory"),
    "zero bandwidth": (f'name = "x"\n{DEVICE}{LINK.replace("1e6", "0")}', "bandwidth"),
    "negative bandwidth": (f'name = "x"\n{DEVICE}{LINK.replace("1e6", "-1")}', "bandwidth"),
    "NaN bandwidth": (f'name = "x"\n{DEVICE}{LINK.replace("1e6", "nan")}', "bandwidth"),
    "devices without a link": (f'name = "x"\n{DEVICE}', "no link"),
    "an unknown field": (f'name = "x"\n{DEVICE}colour = "red"\n{LINK}', "colour"),
    "no TOML": ("name = \n[", "is no TOML"),
}

POST = ("--method", "post")

BAD_ARGUMENTS = {
    "an unknown method": (["--method", "hefty"], "'heft'"),
    "an unknown objective": (["--objective", "tim"], "'time'"),
    "unknown rules": (["--rules", "regale"], "'regal'"),
    "an unknown preset": (["--cluster", "k80-5"], "k80-"),
    "a cluster file that is not there": (["--cluster", "no.toml"], "no.toml"),
    "no devices": (["--cluster", "identical:0"], "0"),
    "devices without a number": (["--cluster", "identical:x"], "such as identical:2"),
    "fewer than no devices": (["--cluster", "identical:-1"], "-1"),
    "a cluster name that is too long": (["--cluster", "x" * 5000], "xxx"),
    "no time": (["--time-limit", "0"], "--time-limit"),
    "negative time": (["--time-limit", "-1"], "--time-limit"),
    "time in words": (
        ["--time-limit", "abc"],
        "a positive number of seconds, such as 10, got 'abc",
    ),
    "time that is no number": (["--time-limit", "nan"], "--time-limit"),
    "endless time": (["--time-limit", "inf"], "--time-limit"),
    "no evaluations": (["--evaluations", "0"], "--evaluations"),
    "a seed that is no number": (["--seed", "x"], "'--seed': must be a whole number, such as 10"),
    "a negative seed": (["--seed", "-1"], "--seed"),
    "no threads": (["--threads", "0"], "'--threads': must be greater than"),
    "an unknown option": (["--colour", "red"], "--colour"),
    "an option without a value": (["--method"], "--method"),
    "a folder that is not there": (["--out", "no/plan.json"], "no/plan.json"),
    "a folder instead of a file": (["--out", "."], "'.'"),
    "an output without a name": (["--out", ""], "cannot write ''"),
    "an output under a file": (["--out", "diamond.json/plan.json"], "diamond.json/plan.json"),
    "the model as output": (["--out", "diamond.json"], "diamond.json"),
    "one output for two files": (["--out", "x.svg", "--picture", "x.svg"], "x.svg"),
    "a schedule nobody can write": (["--schedule", "/proc/none/x"], "/proc/none/x"),
    "a picture of unknown kind": (["--picture", "plan.bmp"], ".svg"),
    "no samples": ([*POST, "--samples", "0"], "--samples"),
    "fewer than no samples": ([*POST, "--samples", "-5"], "--samples"),
    "samples without end": ([*POST, "--samples", "9" * 30], "--samples"),
    "samples for a method that does not learn": (["--samples", "5"], "'auto' does not learn"),
    "noise for a method that does not learn": (["--noise", "0.1"], "--noise"),
    "a study for a method that does not learn": (["--study", "x.study"], "--study"),
    "curves of a method that does not learn": (["--curves", "x.png"], "--curves"),
    "unknown settings": ([*POST, "--settings", "papr"], "'paper'"),
    "an unknown grouping": ([*POST, "--grouping", "prefixes"], "'prefix'"),
    "no groups": ([*POST, "--groups", "0"], "--groups"),
    "groups without end": ([*POST, "--groups", "9" * 20], "--groups"),
    "groups of a rule that takes no number": (
        [*POST, "--grouping", "prefix", "--groups", "4"],
        "'heavy-edge'",
    ),
    "negative noise": ([*POST, "--noise", "-1"], "--noise"),
    "noise that is no number": ([*POST, "--noise", "nan"], "--noise"),
    "noise in words": ([*POST, "--noise", "some"], "'--noise': must be a number, such as 0.1"),
    "endless noise": ([*POST, "--noise", "inf"], "--noise"),
    "a study in a folder that is not there": ([*POST, "--study", "no/x.study"], "no/x.study"),
    "a study that is a folder": ([*POST, "--study", "."], "'.'"),
    "a study without a name": ([*POST, "--study", ""], "cannot write ''"),
    "a study that is the model": ([*POST, "--study", "diamond.json"], "used twice"),
    "a study that is none": ([*POST, "--study", "note.txt"], "not a study"),
    "curves of unknown kind": ([*POST, "--curves", "x.txt"], ".svg"),
    "curves in a folder that is not there": ([*POST, "--curves", "no/x.png"], "no/x.png"),
    "a TensorBoard folder without a name": ([*POST, "--tensorboard", ""], "cannot write into ''"),
    "a TensorBoard folder under a file": (
        [*POST, "--tensorboard", "diamond.json/x"],
        "diamond.json/x",
    ),
    "learning for another objective": ([*POST, "--objective", "memory"], "memory"),
    "a dimension without a size": (["--dim", "batch"], "NAME=SIZE"),
    "a dimension of size zero": (["--dim", "batch=0"], "NAME=SIZE"),
    "a dimension that is no number": (["--dim", "batch=x"], "NAME=SIZE"),
    "a dimension of two sizes": (["--dim", "a=1", "--dim", "a=2"], "--dim a: has sizes 1 and 2"),
    "a dimension of a file that has none": (["--dim", "batch=8"], "ONNX"),
    "an optimiser for a file": (["--optimizer", "adam"], "--optimizer"),
}

BAD_MODELS = {
    "a zoo name with a slip": ("inception_v4", "'inception_v3'"),
    "a file that is not there": ("no/such.json", "no such file"),
    "a folder": (".", "directory"),
    "a module that is not there": ("no_such_module:build", "no_such_module"),
    "a name with terminal escapes": ("\x1b[31mred", "red"),
    "a name that is too long": ("x" * 5000, "xxx"),
    "nothing": ("", "''"),
}


def assert_refused(run, *words: str) -> None:
    """One line that holds every word, and no control characters."""
    assert run.status == 2, (run.out, run.err)
    assert run.out == ""
    lines = run.err.splitlines()
    assert len(lines) == 1, run.err
    assert lines[0].startswith("error: ")
    assert lines[0].isprintable()
    for word in words:
        assert word in lines[0]


@pytest.fixture
def before(tmp_path, model, pair):
    """The files there are, to compare with those after the command."""
    (tmp_path / "note.txt").write_text("once upon a time, and no study\n" * 10)
    return {path: path.read_bytes() for path in tmp_path.iterdir()}


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir()}


# Every bad input is one line with its place, and status 2.
@pytest.mark.parametrize("what", BAD_GRAPHS)
def test_bad_graphs_are_refused(situate, tmp_path, pair, what):
    content, word = BAD_GRAPHS[what]
    (tmp_path / "bad.json").write_text(json.dumps(content))
    assert_refused(situate("plan", "bad.json", "--cluster", pair, "--out", "plan.json"), word)
    assert not Path("plan.json").exists()


@pytest.mark.parametrize("what", BAD_BYTES)
def test_bad_bytes_are_refused(situate, tmp_path, pair, what):
    (tmp_path / "bad.json").write_bytes(BAD_BYTES[what])
    assert_refused(situate("plan", "bad.json", "--cluster", pair), "bad.json")


@pytest.mark.parametrize("what", BAD_CLUSTERS)
def test_bad_clusters_are_refused(situate, tmp_path, model, what):
    content, word = BAD_CLUSTERS[what]
    (tmp_path / "bad.toml").write_text(content)
    assert_refused(situate("plan", model, "--cluster", "bad.toml"), word)


@pytest.mark.parametrize("what", BAD_ARGUMENTS)
def test_bad_arguments_are_refused(situate, tmp_path, model, pair, before, what):
    arguments, word = BAD_ARGUMENTS[what]
    cluster = [] if "--cluster" in arguments else ["--cluster", pair]
    assert_refused(situate("plan", model, *cluster, *arguments), word)
    assert files(tmp_path) == before


@pytest.mark.parametrize("what", BAD_MODELS)
def test_bad_models_are_refused(situate, pair, what):
    name, word = BAD_MODELS[what]
    assert_refused(situate("plan", name, "--cluster", pair), word)


# No input is lost, and hostile names do no harm.
@pytest.mark.parametrize("command", ["plan", "compare", "explain", "export"])
def test_the_cluster_is_not_overwritten(situate, model, pair, command):
    situate("plan", model, "--cluster", pair, "--evaluations", "1", "--out", "plan.json")
    before = Path(pair).read_bytes()
    output = {"explain": "--schedule"}.get(command, "--out")
    rest = ("plan.json", "--to", "dot") if command == "export" else ()
    assert_refused(situate(command, model, *rest, "--cluster", pair, output, pair), "used twice")
    assert Path(pair).read_bytes() == before


def test_without_a_cluster_the_presets_are_named(situate, model):
    assert_refused(situate("plan", model), "--cluster", "k80-4", "identical:N")


def test_times_without_a_unit_do_not_meet_links_in_bytes(situate, pair):
    Path("g.stg").write_text("1\n0 0 0\n1 5 1 0\n2 0 1 1\n")
    assert_refused(situate("plan", "g.stg", "--cluster", pair), "identical:N")


def test_an_unknown_command_is_refused(situate):
    assert_refused(situate("plane"), "plane")


def test_a_missing_model_is_refused(situate):
    assert_refused(situate("plan"), "MODEL")


def test_a_read_only_output_is_left_as_it_was(situate, model, pair, monkeypatch):
    path = Path("plan.json")
    path.write_text("mine")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert_refused(situate("plan", model, "--cluster", pair, "--out", path), "plan.json")
    assert path.read_text() == "mine"


def test_hostile_names_are_shown_escaped_and_kept_in_json(situate, tmp_path, pair):
    content = graph_json(
        ops=[op(name=HOSTILE), B], tensors=[tensor(HOSTILE, HOSTILE, "b")], name=HOSTILE
    )
    (tmp_path / "hostile.json").write_text(json.dumps(content))
    arguments = ("hostile.json", "--cluster", pair, "--evaluations", "200")
    text = situate("explain", *arguments)
    assert text.status == 0
    assert "\x1b" not in text.out
    assert "\u202e" not in text.out
    assert situate("plan", *arguments, "--json").json["graph"] == HOSTILE
