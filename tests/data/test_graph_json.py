"""A graph is read back as it was written."""

from __future__ import annotations

import dataclasses
import gzip

import msgspec
import pytest
from hypothesis import given

from situate.data.cuts import CutParameter
from situate.data.graph import Graph, Op, Tensor
from situate.data.graph_json import encode, write
from situate.data.slices import Slices
from situate.errors import SituateError
from situate.readers import read, situate_json
from tests.readers.graphs import graphs
from tests.solvers.recomputing import layered_step

PAIR = Graph("pair", (Op("a</script>\x1b"), Op('"b"\n')), (Tensor("t", 0, 8, (1,)),), ((0, 1),))


@given(graphs())
def test_every_graph_comes_back_as_it_was(graph):
    again = situate_json.read(encode(graph), "")
    assert again == graph
    assert again.hash == graph.hash
    assert again.warnings == graph.warnings


@pytest.mark.parametrize("name", ["g.json", "g.json.gz"])
def test_a_file_comes_back_as_it_was(tmp_path, name):
    write(PAIR, tmp_path / name)
    assert read(tmp_path / name) == PAIR


@pytest.mark.parametrize("optimizer", ["", "adamw:clip=1.0"])
def test_the_optimizer_is_written_where_it_is_known(optimizer):
    graph = dataclasses.replace(PAIR, optimizer=optimizer)
    assert situate_json.read(encode(graph), "").optimizer == optimizer
    assert b'"optimizer"' not in encode(PAIR)


def test_cut_parameters_are_written_where_there_are_any():
    parameter = CutParameter("qkv.weight", "heads", 0, (0, 8, 16), 3, (("qkv", "mine.Fused"),))
    graph = dataclasses.replace(PAIR, cut_parameters=(parameter,))
    assert situate_json.read(encode(graph), "").cut_parameters == (parameter,)
    assert b"cut_parameters" not in encode(PAIR)
    assert graph.hash == PAIR.hash


def test_the_suffix_gz_packs_and_the_same_graph_gives_the_same_bytes(tmp_path):
    write(PAIR, tmp_path / "a.json.gz")
    write(PAIR, tmp_path / "b.json.gz")
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress(packed) == encode(PAIR)


def test_names_cannot_end_a_script_or_reach_a_terminal():
    assert b"</script>" not in encode(PAIR)
    assert b"\x1b" not in encode(PAIR)


def test_an_op_is_a_line():
    assert b'\n{"name":"\\"b\\"\\n"}\n' in encode(PAIR)


def test_a_folder_that_is_not_there_is_an_error_and_nothing_is_left(tmp_path):
    with pytest.raises(SituateError, match="cannot write"):
        write(PAIR, tmp_path / "none" / "g.json")
    assert list(tmp_path.iterdir()) == []


def test_slices_are_written_where_there_are_any():
    op = msgspec.structs.replace(PAIR.ops[0], slice=1)
    slices = Slices((3, 1), axes={"mask": 1, "table": None}, loss="mean")
    graph = dataclasses.replace(PAIR, ops=(op, *PAIR.ops[1:]), slices=slices)
    assert situate_json.read(encode(graph), "") == graph
    assert b'"slice' not in encode(PAIR)
    assert b'"replica' not in encode(graph)


def test_replicas_are_written_where_there_are_any():
    op = msgspec.structs.replace(PAIR.ops[0], replica=1)
    slices = Slices((3, 1), replicas=(1, 1), once=("a.weight",))
    graph = dataclasses.replace(PAIR, ops=(op, *PAIR.ops[1:]), slices=slices)
    assert situate_json.read(encode(graph), "") == graph


def test_modules_that_run_again_are_written_where_there_are_any():
    graph = layered_step(2, ("l1",))
    assert situate_json.read(encode(graph), "") == graph
    assert b"recompute" not in encode(PAIR)
