"""Models to train by name."""

from __future__ import annotations

import pytest

from situate import zoo
from situate.cli.language.training_models import find_transformer
from situate.errors import SituateError

MODULE = """
import torch
import transformers
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = transformers.AutoModelForCausalLM.from_config(config)


def qwen():
    config = transformers.Qwen2Config(
        num_hidden_layers=3, hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=128, vocab_size=1000,
    )
    return Wrapped(config), torch.randint(1000, (2, 2, 16)).unbind(), lambda model, *tokens: 0


def bert():
    config = transformers.BertConfig(num_hidden_layers=1)
    return transformers.BertModel(config), (torch.randn(2),), lambda model, x: 0


def plain():
    return nn.Linear(4, 4), (torch.randn(2, 4),), lambda model, x: model(x).sum()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "mine_to_train.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "mine_to_train"


# Networks of the zoo, by the parameters that their papers publish.
@pytest.mark.parametrize(
    ("name", "billions"), [("gpt2", 0.124), ("llama_7b", 6.74), ("llama_70b", 68.98), ("moe", 46.7)]
)
def test_networks_of_the_zoo(name, billions):
    model = find_transformer(name)
    assert model.name == name
    assert model.parameters / 1e9 == pytest.approx(billions, rel=3e-3)


@pytest.mark.parametrize("name", sorted({"bert", "resnet50", "nmt4"} & set(zoo.names())))
def test_other_networks_are_refused_with_a_remedy(name):
    with pytest.raises(SituateError, match="gpt2, llama_7b, llama_70b, moe: take one, or give"):
        find_transformer(name)


# Code: the configuration of transformers, wherever it is in the model.
def test_code_with_a_configuration(module):
    model = find_transformer(f"{module}:qwen")
    assert (model.name, model.layers, model.kv_heads, model.vocabulary) == ("qwen", 3, 2, 1000)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("plain", "has no config of transformers: give sizes"),
        ("bert", "model_type 'bert', which situate does not know"),
        ("nothing", "does not exist"),
    ],
)
def test_other_code_is_refused_with_a_remedy(module, function, message):
    with pytest.raises(SituateError, match=message):
        find_transformer(f"{module}:{function}")
