"""Graphs of the zoo: from the package, from disk, or captured."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from situate import zoo
from situate.data.capture_options import CaptureOptions
from situate.data.graph import Graph
from situate.errors import MissingExtra, SituateError
from situate.zoo import loading

PACKAGED = sorted(path.name.removesuffix(".json.xz") for path in loading.GRAPHS.glob("*.xz"))

PARAMETERS = {
    "inception_v3": 27_161_264,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "gpt2": 124_439_808,
    "bert": 109_514_298,
    "vit": 86_567_656,
    "llama_7b": 6_738_415_616,
}
"""As torchvision and transformers count them."""


def parameter_bytes(graph: Graph) -> int:
    return sum(t.size for t in graph.tensors if graph.ops[t.producer].kind == "parameter")


# Packaged graphs need no PyTorch and are what a capture would give.
def test_packaged_graphs_load_without_torch(tmp_path: Path):
    code = f"""
import sys
from situate import zoo
graphs = [zoo.load(name.replace("-", ":")) for name in {PACKAGED}]
assert [graph.name.replace(":", "-") for graph in graphs] == {PACKAGED}
assert not any(graph.warnings for graph in graphs)
sys.exit("torch" in sys.modules)
"""
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    path = str(Path(loading.__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert not list(tmp_path.iterdir())


def test_the_papers_networks_are_packaged():
    assert {"inception_v3", "resnet50", "rnnlm", "nmt2", "cifar_cnn", "gpt2"} <= set(PACKAGED)


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_have_their_published_number_of_parameters(name: str):
    element = 2 if name.startswith("llama") else 4
    assert parameter_bytes(zoo.load(name)) == element * PARAMETERS[name]


@pytest.mark.parametrize("name", ["inception_v3", "rnnlm", "gpt2"])
def test_every_parameter_has_one_update_of_its_group(name: str):
    ops = zoo.load(name).ops
    groups = Counter(op.group for op in ops if op.group)
    assert set(groups.values()) == {2}
    assert {op.group for op in ops if op.phase == "update"} == set(groups)


# Other graphs come from the cache or a capture.
def test_another_optimizer_is_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plain, adam = zoo.load("cifar_cnn"), zoo.load("cifar_cnn", optimizer="adam")
    assert sum(op.persistent for op in adam.ops) == 3 * sum(op.persistent for op in plain.ops)
    monkeypatch.setattr(loading, "captured", None)
    assert zoo.load("cifar_cnn", optimizer="adam") == adam


def test_a_packaged_graph_is_what_would_be_captured():
    torch = pytest.importorskip("torch")
    from situate.torch_capture import TESTED

    if torch.__version__.partition("+")[0] != TESTED:
        pytest.skip("another version of torch captures other ops")
    graph = loading.captured("cifar_cnn", CaptureOptions())
    assert graph.hash == zoo.load("cifar_cnn").hash


def test_a_fresh_graph_is_captured_whatever_is_packaged_or_cached(monkeypatch: pytest.MonkeyPatch):
    names = []
    monkeypatch.setattr(loading, "captured", lambda *arguments: names.append(arguments[0]))
    zoo.load("cifar_cnn")
    assert names == []
    zoo.load("cifar_cnn", fresh=True)
    zoo.load("cifar_cnn", fresh=True)
    assert names == ["cifar_cnn", "cifar_cnn"]


def test_what_must_be_captured_needs_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="needs torch"):
        zoo.load("llama_70b")


def test_inference_takes_no_optimizer():
    with pytest.raises(SituateError, match="leave the optimizer out"):
        zoo.load("resnet50:inference", optimizer="sgd")
    with pytest.raises(SituateError, match="unknown optimizer 'sdg'; did you mean 'sgd'"):
        zoo.load("resnet50", optimizer="sdg")
