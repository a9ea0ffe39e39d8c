"""Fixtures of the command line's tests: a way to run it, and small models on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from situate.cli import main
from situate.data import graph_json
from situate.data.graph import Graph, Op, Tensor
from tests import traces


@pytest.fixture(scope="package", autouse=True)
def _traces_are_shared() -> Iterator[None]:
    """Commands that read the same step trace it once."""
    with traces.shared():
        yield


@dataclass(frozen=True)
class Run:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture
def situate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Run]:
    """Runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Run:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Run(status, captured.out, captured.err)

    return run


def diamond(**changes: Any) -> Graph:
    """a -> (b, c) -> d in seconds; on two devices b and c run side by side."""
    seconds = {"*": 1.0}
    ops = tuple(Op(n, seconds=seconds, persistent=100, module=f"m.{n}") for n in "abcd")
    tensors = (
        Tensor("ta", 0, 1000, (1, 2)),
        Tensor("tb", 1, 1000, (3,)),
        Tensor("tc", 2, 1000, (3,)),
        Tensor("td", 3, 1000, output=True),
    )
    return Graph(**({"name": "diamond", "ops": ops, "tensors": tensors} | changes))


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A file that holds the diamond."""
    path = tmp_path / "diamond.json"
    graph_json.write(diamond(), path)
    return str(path)


@pytest.fixture
def fan(tmp_path: Path) -> str:
    """A file that holds a -> (b, c, d) -> e: on two devices no plan meets the bound, so that
    learners make all their samples."""
    seconds = {"*": 1.0}
    ops = tuple(Op(n, seconds=seconds, persistent=100, module=f"m.{n}") for n in "abcde")
    branches = tuple(Tensor(f"t{n}", k, 1000, (4,)) for k, n in enumerate("bcd", 1))
    path = tmp_path / "fan.json"
    graph_json.write(Graph("fan", ops, (Tensor("ta", 0, 1000, (1, 2, 3)), *branches)), path)
    return str(path)


CLUSTER = """
name = "pair"
[[devices]]
name = "gpu"
count = 2
memory = "{memory} B"
[[links]]
from = "*"
to = "*"
bandwidth = 1e6
"""


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """Two devices of 100 kB, with 1 ms per transfer of the diamond."""
    path = tmp_path / "pair.toml"
    path.write_text(CLUSTER.format(memory=100_000))
    return str(path)


@pytest.fixture
def tight_pair(tmp_path: Path) -> str:
    """Two devices with too little memory for any plan of the diamond."""
    path = tmp_path / "tight.toml"
    path.write_text(CLUSTER.format(memory=1_500))
    return str(path)
