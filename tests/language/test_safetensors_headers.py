"""Headers of safetensors files."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from situate.errors import ReadError
from situate.language.safetensors_headers import INDEX, read_weights
from tests.language.files import llama_safetensors, safetensors_bytes

WHOLE = safetensors_bytes(llama_safetensors())


def test_a_header_without_weights_is_enough(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(WHOLE)
    weights = {weight.name: weight for weight in read_weights(tmp_path, 2)}
    assert len(weights) == len(llama_safetensors())
    query = weights["model.layers.1.self_attn.k_proj.weight"]
    assert (query.shape, query.type.name, query.size) == ((256, 128), "BF16", 2 * 128 * 256)
    assert (query.role, query.layer) == ("attention", 1)
    assert weights["model.embed_tokens.weight"].role == "embedding"
    assert weights["model.norm.weight"].role == "norm"
    assert weights["model.layers.0.mlp.up_proj.weight"].role == "feed-forward"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("lm_head.weight", "output"),
        ("model.layers.1.mlp.experts.7.up_proj.weight", "experts"),
        ("model.layers.1.block_sparse_moe.experts.7.w1.weight", "experts"),
        ("model.layers.1.mlp.shared_experts.up_proj.weight", "shared experts"),
        ("model.layers.1.mlp.gate.weight", "router"),
        ("model.layers.1.linear_attn.in_proj_qkvz.weight", "recurrent"),
        ("backbone.layers.1.mixer.in_proj.weight", "recurrent"),
        ("model.layers.2.self_attn.q_proj.weight", "draft"),
        ("mtp.fc.weight", "draft"),
    ],
)
def test_roles_follow_the_names(tmp_path, name, role):
    (tmp_path / "a.safetensors").write_bytes(safetensors_bytes({name: ("F16", (4, 4))}))
    assert [weight.role for weight in read_weights(tmp_path, 2)] == [role]


def test_tensors_of_pictures_are_left_out(tmp_path):
    tensors = {"vision_tower.a.weight": ("F16", (4,)), "model.visual.b.weight": ("F16", (4,))}
    (tmp_path / "a.safetensors").write_bytes(safetensors_bytes(tensors))
    assert read_weights(tmp_path, 2) == []


def test_an_index_names_the_files(tmp_path):
    names = list(llama_safetensors())
    halves = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, part in halves.items():
        tensors = {name: llama_safetensors()[name] for name in part}
        (tmp_path / file).write_bytes(safetensors_bytes(tensors))
    index = {"weight_map": {name: file for file, part in halves.items() for name in part}}
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert {weight.name for weight in read_weights(tmp_path, 2)} == set(names)
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(ReadError, match=f"b.safetensors is missing, and {INDEX} lists it"):
        read_weights(tmp_path, 2)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({}, "has no weight_map"),
        ({"weight_map": {"a": "../secret.safetensors"}}, "is no name of a file beside it"),
    ],
)
def test_a_bad_index_is_refused(tmp_path, index, message):
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(ReadError, match=message):
        read_weights(tmp_path, 2)


def test_a_tensor_in_two_files_is_refused(tmp_path):
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / name).write_bytes(WHOLE)
    with pytest.raises(ReadError, match=r"b\.safetensors: has tensor"):
        read_weights(tmp_path, 2)


def one(entry: object) -> bytes:
    header = json.dumps({"t": entry}).encode()
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "ends within its header"),
        (WHOLE[:50], "ends within its header"),
        (struct.pack("<Q", 2**60), "says that its header has"),
        (struct.pack("<Q", 2) + b"[]", "expected"),
        (struct.pack("<Q", 2) + b"{]", "is not valid JSON"),
        (one({"dtype": "F16", "shape": [4], "data_offsets": [0, 7]}), "contradict each other"),
        (one({"dtype": "F16", "shape": [-4], "data_offsets": [0, 8]}), "contradict each other"),
        (one({"dtype": "F16", "shape": [-1, -1], "data_offsets": [0, 2]}), "contradict each other"),
        (one({"dtype": "F16", "shape": [2**62, 4], "data_offsets": [0, 8]}), "contradict"),
        (one({"dtype": "Q4_K", "shape": [256], "data_offsets": [0, 144]}), "unknown type 'Q4_K'"),
        (one({"dtype": "F16", "shape": [4]}), "tensor 't': "),
        (one(5), "tensor 't': "),
    ],
)
def test_bad_headers_are_refused(tmp_path, data, message):
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(ReadError, match=rf"a\.safetensors: .*{message}"):
        read_weights(tmp_path, 2)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_headers_do_no_harm(tmp_path, place, damage):
    data = WHOLE[:place] + damage + WHOLE[place + len(damage) :]
    (tmp_path / "a.safetensors").write_bytes(data)
    with contextlib.suppress(ReadError):
        read_weights(tmp_path, 2)
