"""situate's own JSON is read strictly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.data.graph import Graph, MachineDevice, Op, Tensor
from situate.data.rules import RULES
from situate.errors import GraphError, ReadError
from situate.files.strict_json import top_level
from situate.readers import situate_json
from situate.readers.recognise import recognise


def content(**changes: object) -> bytes:
    file = {
        "format": "situate-graph",
        "version": 1,
        "name": "g",
        "ops": [{"name": "load"}, {"name": "store", "seconds": {"gpu": 1, "*": 2.5}}],
        "tensors": [{"name": "t", "producer": "load", "size": 8, "consumers": ["store"]}],
    }
    return json.dumps(file | changes).encode()


def test_ops_are_named_and_not_numbered():
    assert situate_json.read(content(control=[["load", "store"]]), "") == Graph(
        "g",
        (Op("load"), Op("store", seconds={"gpu": 1.0, "*": 2.5})),
        (Tensor("t", 0, 8, (1,)),),
        ((0, 1),),
    )


DOCUMENT = (Path(__file__).parents[2] / "docs" / "graph-format.md").read_text()


def test_the_documents_example_is_a_graph():
    example = DOCUMENT.split("```json\n")[1].split("```")[0]
    assert situate_json.read(example.encode(), "").name == "two-layers"


@pytest.mark.parametrize("kind", [situate_json.File, situate_json.NamedTensor, Op, MachineDevice])
def test_every_field_is_documented(kind):
    assert [name for name in kind.__struct_fields__ if f"`{name}`" not in DOCUMENT] == []


def test_a_graph_without_a_name_is_called_after_its_file():
    assert situate_json.read(content(name=""), "file").name == "file"


def test_only_its_own_format_is_recognised():
    assert recognise(content()) == "situate"
    for other in (content(format="situate-plan"), b"{}"):
        assert not situate_json.recognises(other, top_level(other))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version: invalid enum value 2"),
        ({"colour": 1}, "unknown field colour"),
        ({"ops": [{"name": "a", "size": 1}]}, r"ops\[0\]: object contains unknown field size"),
        ({"ops": [{"name": "a", "flops": "1"}]}, r"ops\[0\].flops: expected int, got str"),
        ({"ops": [{"name": "a", "flops": 1.5}]}, r"ops\[0\].flops: expected int, got float"),
        ({"ops": [{"flops": 1}]}, r"ops\[0\]: object missing required field name"),
        ({"ops": None}, "ops: expected array, got null"),
        ({"unit": "ms"}, "unit: invalid enum value 'ms'"),
        (
            {"tensors": [{"name": "t", "producer": "laod", "size": 1}]},
            "tensor 't': its producer 'laod' is no op; did you mean 'load'",
        ),
        (
            {"tensors": [{"name": "t", "producer": "load", "size": 1, "consumers": ["stor"]}]},
            "tensor 't': its consumer 'stor' is no op; did you mean 'store'",
        ),
        ({"control": [["load", "stre"]]}, "'stre' is no op; did you mean 'store'"),
        (
            {"ops": [{"name": "load", "phase": "fwd"}]},
            "op 'load': phase: unknown phase 'fwd'; did you mean 'forward'",
        ),
        (
            {"ops": [{"name": "load", "dtype": "fp16"}]},
            "op 'load': dtype: unknown dtype 'fp16'; did you mean 'float16'",
        ),
        ({"rules": "regall"}, "rules: unknown rules 'regall'; did you mean 'regal'"),
        ({"control": [["load"]]}, r"control\[0\]: expected array of length 2"),
        (
            {"machine": [{"name": "a", "kind": "gpu", "memory": 0}]},
            r"machine\[0\].memory: must be between 1 and 2\^53, got 0",
        ),
        (
            {"machine": [{"name": "a", "kind": "gpu", "memory": 2**64}]},
            r"machine\[0\].memory: must be between 1 and 2\^53, got 18446744073709551616",
        ),
        ({"machine": [{"name": "a", "memory": 1}]}, r"machine\[0\]: object missing .* kind"),
    ],
)
def test_a_file_that_is_not_as_described_names_the_place(changes, message):
    with pytest.raises(ReadError, match=message):
        situate_json.read(content(**changes), "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ops": [], "tensors": []}, "the graph has no ops"),
        ({"ops": [{"name": "a"}, {"name": "a"}], "tensors": []}, "two ops are called 'a'"),
        ({"ops": [{"name": "a", "seconds": {"*": -1}}], "tensors": []}, "op 'a': seconds"),
        ({"ops": [{"name": "a", "persistent": -1}], "tensors": []}, "op 'a': persistent"),
        ({"ops": [{"name": "a", "workspace": 2**70}], "tensors": []}, "op 'a': workspace"),
        ({"control": [["load", "load"]]}, "op 'load' waits for itself"),
        ({"control": [["store", "load"]]}, "cycle: 'load' -> 'store' -> 'load'"),
        (
            {"tensors": [{"name": "t", "producer": "load", "size": 1, "consumers": ["load"]}]},
            "op 'load' consumes its own output",
        ),
        (
            {"ops": [{"name": str(i), "persistent": 2**53} for i in range(600)], "tensors": []},
            "more than 2\\^62",
        ),
    ],
)
def test_a_graph_that_breaks_its_own_rules_is_named(changes, message):
    with pytest.raises(GraphError, match=message):
        situate_json.read(content(**changes), "")


def test_a_dangling_name_in_a_large_graph_gives_a_short_message():
    ops = [{"name": f"layer{i}"} for i in range(3000)]
    tensors = [{"name": "t", "producer": "zzz", "size": 1}]
    with pytest.raises(ReadError) as error:
        situate_json.read(content(ops=ops, tensors=tensors), "")
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("dtype", ["", "float16", "float8e4m3fn", "string", "quint4x2"])
def test_a_dtype_that_a_reader_writes_is_read(dtype):
    ops = [{"name": "load", "dtype": dtype}]
    assert situate_json.read(content(ops=ops, tensors=[]), "").ops[0].dtype == dtype


def test_the_rules_of_a_graph_are_those_of_problems():
    assert set(situate_json.RULES) == RULES.keys()
