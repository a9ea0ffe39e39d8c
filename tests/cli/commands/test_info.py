"""`situate info`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.data import graph_json
from situate.data.graph import Graph, Op, Tensor
from situate.errors import ReadError
from situate.readers import read
from tests.cli.conftest import diamond
from tests.language.files import (
    LLAMA,
    LLAMA_CONFIG,
    gguf_header,
    llama_safetensors,
    llama_tensors,
    safetensors_bytes,
)


# Text and JSON count the same things.
def test_text_counts_ops_and_sizes(situate, model):
    run = situate("info", model)
    assert run.status == 0
    lines = [line.split() for line in run.out.splitlines()]
    assert ["ops", "4"] in lines
    assert ["control", "edges", "0"] in lines


def test_json_counts_ops_and_sizes(situate, model):
    content = situate("info", model, "--json").json
    assert content["ops"] == 4
    assert content["tensor_bytes"] == 4000
    assert content["kinds"] == {"op": 4}
    assert content["hash"] == diamond().hash


def test_text_and_json_count_a_parameter_once(situate, tmp_path):
    ops = (Op("w", kind="parameter", persistent=2**20), Op("mm", flops=8))
    tensors = (
        Tensor("tw", 0, 2**20, (1,), resident=True),
        Tensor("out", 1, 2**10, output=True),
    )
    graph_json.write(Graph("held", ops, tensors), tmp_path / "held.json")
    assert situate("info", "held.json", "--json").json["tensor_bytes"] == 2**10
    text = " ".join(situate("info", "held.json").out.split())
    assert "tensors 2, 1.00 KiB beside what is held" in text
    assert "held for the step 1.00 MiB" in text


def test_json_has_the_work_and_the_times_that_the_table_shows(situate, tmp_path):
    ops = (
        Op("a", kind="k", phase="forward", flops=3, seconds={"cpu": 1.5}),
        Op("b", kind="k", phase="backward", flops=1, seconds={"cpu": 2.0, "gpu": 1.0}),
    )
    graph_json.write(Graph("work", ops), tmp_path / "work.json")
    content = situate("info", "work.json", "--json").json
    assert content["longest_chain_flops"] == 3
    assert content["phase_flops"] == {"forward": 3, "backward": 1}
    assert content["kind_flops"] == {"k": 4}
    assert content["seconds"] == {"cpu": 3.5, "gpu": 1.0}


def test_warnings_of_the_file_go_to_stderr(situate, tmp_path):
    graph_json.write(diamond(warnings=("beware \x1b[31m",)), tmp_path / "warned.json")
    run = situate("info", "warned.json", "--json")
    assert run.err == "warning: beware \\x1b[31m\n"
    assert run.json["ops"] == 4


def test_a_missing_file_is_refused(situate):
    run = situate("info", "no.json")
    assert (run.status, run.out) == (2, "")
    assert run.err == "error: no.json: no such file\n"


# Language models: GGUF files, folders, and a config.json with a type.
@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_header(LLAMA, llama_tensors()))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_CONFIG))
    return path


def test_a_gguf_file_shows_parameters_types_and_cache(situate, gguf):
    run = situate("info", gguf)
    assert (run.status, run.err) == (0, "")
    text = " ".join(run.out.split())
    assert "architecture llama, 2 layers of width 256" in text
    assert "cache per 1,000 tokens 1,000 KiB in f16" in text
    assert situate("info", gguf, "--json").json["parameters"] == 1_206_528


def test_a_configuration_needs_a_type(situate, config):
    run = situate("info", config)
    assert run.status == 2
    assert run.err == f"error: {config}: holds no types: give --quant, such as --quant Q4_K_M\n"
    content = situate("info", config, "--quant", "q6_k", "--json").json
    assert content["bytes_by_type"]["Q6_K"] > content["bytes_by_type"]["F32"]
    assert situate("info", config.parent, "--quant", "q6_k", "--json").json == content


def test_bad_language_models_are_refused_in_one_line(situate, gguf, config, model):
    gguf.write_bytes(gguf.read_bytes()[:500])
    run = situate("info", gguf)
    assert run.status == 2
    assert run.err.startswith(f"error: {gguf}: ends within its header")
    assert run.err.count("\n") == 1
    assert "unknown file type" in situate("info", config, "--quant", "Q9").err
    assert "--quant is for language models" in situate("info", model, "--quant", "Q8_0").err


def test_warnings_of_a_language_model_go_to_stderr(situate, config):
    (config.parent / "m.safetensors").write_bytes(safetensors_bytes(llama_safetensors()))
    config.write_text(json.dumps(LLAMA_CONFIG | {"quantization_config": {"quant_method": "awq"}}))
    run = situate("info", config.parent, "--json")
    assert run.err.startswith("warning: the weights are packed (awq)")
    assert run.json["source"] == "safetensors"


def test_readers_of_graphs_say_who_reads_language_models(gguf, config):
    for model in (gguf, config):
        with pytest.raises(ReadError, match="situate info, plan and convert read it"):
            read(model)
