"""The contents of a language model as text and as plain values."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from situate.language.config import config_of
from situate.language.model import LanguageModel
from situate.language.reading import model_of_config
from situate.report.language_model import (
    growth_by_type,
    language_model_figures,
    language_model_table,
)
from tests.language.configs import CONFIGS


def model(name: str, title: str = "") -> LanguageModel:
    return model_of_config(config_of(CONFIGS[name]), "Q4_K_M", title or name)


def lines(entry: LanguageModel) -> list[str]:
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(language_model_table(entry))
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_text_says_what_a_mixture_of_experts_holds():
    text = lines(model("Qwen3-30B-A3B"))
    assert text[0] == "Qwen3-30B-A3B"
    assert "architecture qwen3moe, 48 layers of width 2,048" in text
    assert "source config, Q4_K_M, types by the rules of llama-quantize" in text
    assert "parameters 30.5 G, of which a token uses 3.35 G" in text
    assert "weights 17.3 GiB, 4.86 bits a parameter" in text
    assert "experts 8 of 128 for a token in 48 layers; 2.72 MiB each" in text
    assert "attention full in 48" in text
    assert "cache per 1,000 tokens 93.8 MiB in f16, 49.8 MiB in q8_0, 26.4 MiB in q4_0" in text
    assert any(line.startswith("q4_k 289") for line in text)
    assert any(line.startswith("experts 144") for line in text)


def test_text_says_what_else_a_model_has():
    assert "attention 1,024 tokens in 52, full in 10" in lines(model("Gemma-3-27B"))
    assert "vocabulary 262,144 tokens, tied" in lines(model("Gemma-3-27B"))
    text = lines(model("Qwen3-Next-80B"))
    assert "attention full in 12, recurrent in 36" in text
    assert "state 75.4 MiB a sequence" in text
    text = lines(model("Mamba2-2.7B"))
    assert "attention recurrent in 64" in text
    assert not [line for line in text if line.startswith("cache")]
    assert [line for line in lines(model("GLM-4.5-Air")) if line.startswith("guessing layers")]


def test_hostile_names_are_escaped():
    assert lines(model("Llama-3.1-8B", "a\x1b[31mb"))[0] == "a\\x1b[31mb"


def test_figures_are_the_models_and_plain():
    entry = model("DeepSeek-R1")
    figures = json.loads(json.dumps(language_model_figures(entry)))
    assert figures["parameters"] == entry.parameters
    assert figures["bytes"] == sum(figures["bytes_by_role"].values()) == entry.size
    assert figures["experts"]["count"] == 256
    assert figures["attention"] == ["latent"] * 61
    assert figures["cache_bytes_per_1000_tokens"]["F16"] == 1000 * 61 * 576 * 2


def test_only_types_that_fit_a_head_are_listed():
    odd = config_of(CONFIGS["GLM-Z1-32B"] | {"head_dim": 50})
    assert list(growth_by_type(model_of_config(odd, "F16", "odd"))) == ["F16"]
    assert growth_by_type(model("Mamba2-2.7B")) == dict.fromkeys(("F16", "Q8_0", "Q4_0"), 0)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_model_can_be_shown(name):
    assert lines(model(name))
    assert language_model_figures(model(name))["layers"] > 0
