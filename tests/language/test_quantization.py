"""Types of tensors by file type, compared with llama.cpp's own tables of ten models."""

from __future__ import annotations

import json

import pytest

from situate.errors import SituateError
from situate.language.config import config_of
from situate.language.gguf import LongArray
from situate.language.model import gguf_shapes
from situate.language.quantization import (
    FILE_TYPES,
    NUMBERED_FILE_TYPES,
    find_file_type,
    quantized_types,
)
from situate.language.reading import named_architecture
from tests.language.files import TABLES, table, table_metadata, table_rows

MODELS = json.loads((TABLES / "quantized_types.json").read_text())["models"]


def layers(text: str) -> list[int]:
    """The numbers in `0-3,7`."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def expected_types(usual: str, exceptions: list[str]) -> tuple[str, dict[str, str]]:
    """The usual type, and the tensors of another type."""
    types = {}
    for entry in exceptions:
        name, kind, *where = entry.split()
        names = [f"blk.{i}.{name}" for i in layers(where[0])] if where else [name]
        types |= dict.fromkeys((f"{full}.weight" for full in names), kind)
    return usual, types


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_has_the_type_of_llama_quantize_under_every_file_type(name):
    config = config_of(MODELS[name]["config"])
    shapes = gguf_shapes(config.architecture, config.sizes, config.tied)
    for file_type, (usual, *exceptions) in MODELS[name]["types"].items():
        default, expected = expected_types(usual, exceptions)
        types = quantized_types(config.sizes, shapes, file_type, imatrix=False)
        assert set(expected) <= set(types)
        wrong = {
            tensor: kind.name
            for tensor, kind in types.items()
            if kind.name not in ("F32", expected.get(tensor, default))
        }
        assert wrong == {}, file_type


# Real files: their headers have the types that the rules give.
@pytest.mark.parametrize("name", ["gemma-3-270m-q4_k_m", "deepseek-r1-distill-qwen-7b-q4_k_m"])
def test_real_files_have_the_types_of_the_rules(name):
    content = table(name)
    rows = table_rows(content)
    metadata = {
        key: LongArray(len(value)) if isinstance(value, list) else value
        for key, value in table_metadata(content).items()
    }
    sizes = named_architecture(metadata["general.architecture"]).sizes(metadata)
    shapes = {tensor: tuple(shape) for tensor, shape, _ in rows}
    types = quantized_types(sizes, shapes, "Q4_K_M")
    assert {tensor: kind.name for tensor, kind in types.items()} == {
        tensor: kind for tensor, _, kind in rows
    }


def test_an_importance_matrix_changes_some_types():
    config = config_of(MODELS["qwen3-0.6b"]["config"])
    shapes = gguf_shapes(config.architecture, config.sizes, config.tied)

    def down(file_type: str, imatrix: bool | None) -> str:
        types = quantized_types(config.sizes, shapes, file_type, imatrix)
        return types["blk.0.ffn_down.weight"].name

    assert (down("IQ4_XS", False), down("IQ4_XS", True)) == ("Q5_K", "IQ4_XS")
    assert (down("Q4_0", False), down("Q4_0", True)) == ("Q4_0", "Q4_1")
    assert down("IQ3_XXS", None) == down("IQ3_XXS", True) == "IQ3_XXS"
    assert down("IQ4_XS", None) == "Q5_K"


def test_rows_that_fit_no_block_fall_back():
    sizes = config_of(MODELS["qwen3-0.6b"]["config"]).sizes
    shapes = {"blk.0.attn_q.weight": (96, 8), "blk.0.attn_k.weight": (100, 8)}
    types = quantized_types(sizes, shapes, "Q4_K_M")
    assert [kind.name for kind in types.values()] == ["Q5_0", "F16"]


def test_models_of_eight_experts_keep_more_of_their_attention():
    config = config_of(
        {
            "model_type": "mixtral",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 32000,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
        }
    )
    shapes = gguf_shapes(config.architecture, config.sizes, config.tied)
    types = quantized_types(config.sizes, shapes, "Q4_K_M")
    names = ("attn_k", "attn_v", "attn_output", "attn_q", "ffn_gate_exps", "ffn_gate_inp")
    kinds = [types[f"blk.9.{name}.weight"].name for name in names]
    assert kinds == ["Q8_0", "Q8_0", "Q5_K", "Q4_K", "Q4_K", "F32"]


def test_file_types_are_found_in_either_case_and_by_short_names():
    assert find_file_type("q4_k_m") == find_file_type("Q4_K") == "Q4_K_M"
    assert find_file_type("mxfp4") == "MXFP4_MOE"
    assert set(NUMBERED_FILE_TYPES.values()) == set(FILE_TYPES)


def test_unknown_file_types_are_refused():
    with pytest.raises(SituateError, match="--quant Q4_K_X: unknown file type; did you mean"):
        find_file_type("Q4_K_X")
    with pytest.raises(SituateError, match="is a mixture that no rule describes"):
        find_file_type("UD-Q4_K_XL")
