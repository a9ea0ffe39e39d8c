"""The commands that make REGAL's sets of graphs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

pytest.importorskip("tensorboard")
pytest.importorskip("torch")

from research.regal import real, synthetic
from research.regal.costgraph_file import costgraph
from situate.bench.families.regal import synthetic as drawn
from situate.data.graph import Graph
from situate.readers import read
from tests.solvers import families

SMALL = ("--train", "3", "--valid", "1", "--test", "1")


def files(folder: Path, *arguments: str) -> dict[str, bytes]:
    """The files of the parts."""
    synthetic.main([str(folder), *SMALL, *arguments])
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.gz"))}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few evaluations of few ops, of which about half of the graphs are kept."""
    monkeypatch.setattr(synthetic, "WANTED", synthetic.Wanted((10, 14), 20, 200, 0.1))
    monkeypatch.setattr(synthetic, "CHUNK", 4)


def test_files_hang_on_the_seed_and_not_on_the_number_of_workers(tmp_path: Path) -> None:
    one = files(tmp_path / "one", "--workers", "1")
    assert one == files(tmp_path / "two", "--workers", "2")
    assert [Path(name).parent.name for name in one] == ["test", *["train"] * 3, "valid"]
    assert one != files(tmp_path / "other", "--workers", "1", "--seed", "1")
    assert len(set(one.values())) == 5


def test_what_is_interrupted_goes_on_to_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = files(tmp_path / "whole", "--workers", "1")
    written: list[Any] = []
    write = synthetic.write_bytes

    def fails_at_the_third(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) == 3:
            raise KeyboardInterrupt
        write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(synthetic, "write_bytes", fails_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            files(tmp_path / "left", "--workers", "1")
    assert files(tmp_path / "left", "--workers", "1") == whole


def test_a_folder_of_another_seed_is_refused(tmp_path: Path) -> None:
    files(tmp_path, "--workers", "1")
    with pytest.raises(SystemExit, match=r"train\.json: is of .*: give another folder"):
        files(tmp_path, "--workers", "1", "--seed", "1")


def test_only_graphs_on_which_a_longer_search_pays_are_kept(tmp_path: Path) -> None:
    files(tmp_path, "--workers", "1")
    progress = json.loads((tmp_path / "train.json").read_text())
    survivors = [
        synthetic.candidate(0, "inputs and outputs", synthetic.WANTED, "train", number)
        for number in range(progress["tried"])
    ]
    assert sum(file is not None for file in survivors) == progress["kept"] == 3


def times(graph: Graph) -> list[float]:
    return [(op.seconds or {})["*"] for op in graph.ops]


def test_a_costgraphdef_is_the_graph_again(tmp_path: Path) -> None:
    of = drawn("ba", 20, 1)
    (tmp_path / "g.pb.gz").write_bytes(costgraph(of))
    result = read(tmp_path / "g.pb.gz")
    assert result.source == "costgraph"
    assert [op.name for op in result.ops] == [op.name for op in of.ops]
    assert times(result) == pytest.approx([1e-6 * seconds for seconds in times(of)])
    assert set(result.control) == set(of.control)
    edges = {(t.producer, t.size, t.consumers) for t in of.tensors if t.consumers}
    assert {(t.producer, t.size, t.consumers) for t in result.tensors if t.consumers} == edges


def test_an_op_takes_time_for_all_its_tensors_or_for_its_outputs_alone() -> None:
    """Both readings, up to noise whose standard deviation is a tenth."""
    for counted in ("inputs and outputs", "outputs"):
        of = drawn("ws", 200, 1, count_rule=counted)
        units = [0] * len(of.ops)
        for tensor in of.tensors:
            units[tensor.producer] += tensor.size
            for consumer in tensor.consumers if counted != "outputs" else ():
                units[consumer] += tensor.size
        ratios = [t / u for t, u in zip(times(of), units, strict=True) if u]
        assert sum(ratios) / len(ratios) == pytest.approx(1, abs=0.03)
        assert min(ratios) > 0.5
        assert max(ratios) < 1.5
    assert times(of)[0] == times(of)[-1] == 0


def anywhere(of: Graph) -> Graph:
    """The graph with ops that every device runs."""
    ops = [structs.replace(op, seconds={"*": (op.seconds or {})["x1"]}) for op in of.ops]
    return replace(of, ops=tuple(ops))


def chain(ops: int, **changes: Any) -> Graph:
    return anywhere(families.chain(ops, **changes))


def fork(ops: int) -> Graph:
    return anywhere(families.fork(ops))


def counts() -> dict[str, int]:
    return {"too small or too large": 0, "same topology": 0}


def test_of_a_topology_one_graph_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "OPS", (4, 6))
    counted = counts()
    graphs = [chain(3), chain(4), chain(4, size=9), fork(4), chain(7)]
    assert len(list(real.distinct(graphs, counted))) == 2
    assert counted == {"too small or too large": 2, "same topology": 1}


def test_a_topology_is_the_sequence_of_in_degrees() -> None:
    assert real.in_degrees(chain(4)) == (0, 1, 1, 1)
    assert real.in_degrees(fork(4)) == (0, 1, 1, 2)


def parts(folder: Path) -> dict[str, list[str]]:
    return {
        part.name: sorted(file.name.removesuffix(".json.gz") for file in part.iterdir())
        for part in sorted(folder.iterdir())
    }


def test_neighbours_by_size_are_split_and_what_has_no_room_is_counted(tmp_path: Path) -> None:
    """A chain is as fast on one device as on two."""
    named = [replace(wide(), name=f"g:{i}") for i in range(6)]
    named[1] = replace(chain(4, seconds=1.0), name="chain")
    timed = [real.timed(graph) for graph in named]
    result = real.write_parts(timed, "time", tmp_path)
    assert parts(tmp_path / "time") == {
        "test": ["g.4"],
        "train": ["g.0", "g.2", "g.5"],
        "valid": ["g.3"],
    }
    assert result == {"time: no room": 1, "time: train": 3, "time: valid": 1, "time: test": 1}


def test_a_graph_is_in_one_part_though_another_run_had_other_neighbours(tmp_path: Path) -> None:
    named = [real.timed(replace(wide(), name=f"g{i}")) for i in range(5)]
    real.write_parts(named, "time", tmp_path)
    real.write_parts(named[1:], "time", tmp_path)
    assert parts(tmp_path / "time") == {"test": [], "train": ["g1", "g2", "g3"], "valid": ["g4"]}


def wide() -> Graph:
    """Ops side by side of which no short search finds the best halves."""
    return anywhere(families.apart(24, seconds=[1.0 + 0.01 * 1.7 ** (j % 9) for j in range(24)]))
