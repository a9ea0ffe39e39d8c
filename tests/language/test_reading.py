"""Language models by path."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from situate.errors import ReadError, SituateError
from situate.language import is_language_model, read_language_model
from situate.language.config import CONFIG
from tests.language.configs import CONFIGS
from tests.language.files import (
    LLAMA,
    LLAMA_CONFIG,
    gguf_header,
    llama_safetensors,
    llama_tensors,
    safetensors_bytes,
    table,
    table_metadata,
    table_rows,
)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_header(LLAMA | {"general.file_type": 15}, llama_tensors()))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny-Llama"
    path.mkdir()
    (path / CONFIG).write_text(json.dumps(LLAMA_CONFIG))
    (path / "model.safetensors").write_bytes(safetensors_bytes(llama_safetensors()))
    return path


# The same model from three sources.
def test_a_gguf_file_has_its_own_types(gguf):
    model = read_language_model(gguf)
    assert (model.name, model.source, model.file_type) == ("tiny", "gguf", "Q4_K_M")
    assert (model.tied, model.complete) == (True, False)
    assert model.sizes.vocabulary == 100


def test_a_folder_is_taken_as_it_is(folder):
    model = read_language_model(folder)
    assert (model.name, model.source, model.file_type) == ("Tiny-Llama", "safetensors", None)
    assert model.bytes_by_type() == {"BF16": model.size}


def test_a_configuration_has_types_by_rule(folder):
    model = read_language_model(folder / CONFIG, "q8_0")
    assert (model.name, model.source, model.file_type) == ("Tiny-Llama", "config", "Q8_0")
    assert set(model.bytes_by_type()) == {"Q8_0", "F32"}
    assert read_language_model(folder, "Q8_0").size == model.size


def test_all_sources_count_the_same_parameters(gguf, folder):
    parameters = {
        read_language_model(gguf).parameters,
        read_language_model(folder).parameters,
        read_language_model(folder / CONFIG, "Q4_K_M").parameters,
    }
    assert len(parameters) == 1


def test_a_matrix_of_the_output_in_the_files_counts_whatever_the_configuration_says(folder):
    tensors = llama_safetensors() | {"lm_head.weight": ("BF16", (100, 256))}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    assert not read_language_model(folder).tied
    assert not read_language_model(folder, "Q8_0").tied
    assert read_language_model(folder / CONFIG, "Q8_0").tied


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gemma-3-270m-q4_k_m", 268_098_176), ("deepseek-r1-distill-qwen-7b-q4_k_m", 7_615_616_512)],
)
def test_real_headers_are_models(tmp_path, name, parameters):
    content = table(name)
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_header(table_metadata(content), table_rows(content)))
    model = read_language_model(path)
    assert model.parameters == parameters
    assert model.size == content["data_bytes"]
    assert model.file_type == "Q4_K_M"
    assert not [weight.name for weight in model.weights if weight.role == "other"]


def test_what_is_a_language_model(gguf, folder, tmp_path):
    assert is_language_model(gguf)
    assert is_language_model(str(folder))
    assert is_language_model(folder / CONFIG)
    for other in (tmp_path, folder / "model.safetensors", tmp_path / "absent", "a\0b"):
        assert not is_language_model(other)


# Bad input: one line that begins with the path.
def refusal(path: Path, quant: str | None = None) -> str:
    with pytest.raises(SituateError) as caught:
        read_language_model(path, quant)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_types_where_there_are_some_or_none_are_refused(gguf, folder):
    assert refusal(gguf, "Q8_0") == f"{gguf}: a GGUF file has its own types: leave --quant out"
    assert "give --quant" in refusal(folder / CONFIG)
    (folder / "model.safetensors").unlink()
    assert "give --quant" in refusal(folder)


@pytest.mark.parametrize(
    ("metadata", "tensors", "message"),
    [
        ({}, llama_tensors(), "has no general.architecture"),
        ({"general.architecture": 5}, llama_tensors(), "has no general.architecture"),
        ({"general.architecture": "clip"}, llama_tensors(), "architecture 'clip', which situate"),
        (LLAMA, [], "holds a vocabulary alone"),
        (LLAMA, llama_tensors()[1:], "has no embedding"),
        (LLAMA, llama_tensors()[:5], "has no tensors of layer 1 of 2"),
        (LLAMA | {"llama.block_count": 5000}, llama_tensors(), "llama.block_count: must be"),
    ],
)
def test_headers_that_are_no_models_are_refused(tmp_path, metadata, tensors, message):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_header(metadata, tensors))
    text = refusal(path)
    assert text.startswith(f"{path}: ")
    assert message in text


def test_weights_that_are_packed_bring_a_warning(folder):
    packed = LLAMA_CONFIG | {"quantization_config": {"quant_method": "gptq"}}
    (folder / CONFIG).write_text(json.dumps(packed))
    assert "packed (gptq)" in read_language_model(folder).warnings[0]


NUMBERS = st.one_of(st.integers(0, 70), st.integers(0, 2**31), st.floats(0, 100))


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_sizes_of_any_kind_do_no_harm(tmp_path, name, data):
    config = CONFIGS[name]
    sizes = [key for key, value in config.items() if isinstance(value, int)] or ["vocab_size"]
    path = tmp_path / CONFIG
    change = {data.draw(st.sampled_from(sizes)): data.draw(NUMBERS)}
    path.write_text(json.dumps(config | change))
    with contextlib.suppress(ReadError):
        read_language_model(path, "Q4_K_M")
