"""A small model of a package, and the inputs of a step."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

Inputs = Callable[[Any, bool], Mapping[str, Any]]
"""From a model's configuration, and whether it trains, to named arguments."""

Built = tuple[torch.nn.Module, Any, Callable[..., Any]]

BATCH, LENGTH, PIXELS = 2, 16, 32


@dataclass(frozen=True)
class Configuration:
    """One model.

    Attributes:
        name: in the rows.
        package: that is imported for it.
        kind: of model, in the field's words.
        build: from whether it trains to model, inputs and loss, as `situate.capture` takes them.
    """

    name: str
    package: str
    kind: str
    build: Callable[[bool], Built]


def returned(model: torch.nn.Module, **batch: Any) -> Any:
    """The loss that the model returns itself."""
    return model(**batch).loss


def squares(*outputs: str) -> Callable[..., Any]:
    """A loss of models that return none: the mean squares of these outputs in sum."""

    def loss(model: torch.nn.Module, **batch: Any) -> Any:
        result = model(**batch)
        return sum(getattr(result, name).square().mean() for name in outputs)

    return loss


def transformers_model(
    kind: str,
    model: str,
    inputs: Inputs,
    settings: Mapping[str, Any],
    loss: Callable[..., Any] = returned,
    name: str = "",
) -> Configuration:
    """A model class of transformers, its configuration made of `settings`.

    Args:
        kind: as in `Configuration`.
        model: name of the class.
        inputs: of a step.
        settings: of its configuration class; all else is as that class has it.
        loss: of a training step.
        name: by default the class's.
    """

    def build(training: bool) -> Built:
        import transformers

        model_class = getattr(transformers, model)
        config = model_class.config_class(**settings)
        return model_class(config).train(training), dict(inputs(config, training)), loss

    return Configuration(name or model, "transformers", kind, build)


FILE = Path(__file__).parent / "configurations.json"
"""The models and their settings, by module or package. `<<` names settings that others extend."""


@cache
def _listed() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def entries(section: str) -> list[dict[str, Any]]:
    """The entries of a section of the file, each with all of its settings."""
    return [
        entry | {"settings": _resolved(entry.get("settings", {}))} for entry in _listed()[section]
    ]


def named_settings(name: str) -> dict[str, Any]:
    """Settings that several models share."""
    settings: dict[str, Any] = _resolved(_listed()["settings"][name])
    return settings


def _resolved(value: Any) -> Any:
    """A value with the settings that it extends."""
    if isinstance(value, list):
        return [_resolved(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    shared = [named_settings(name) for name in value.get("<<", ())]
    own = {name: _resolved(entry) for name, entry in value.items() if name != "<<"}
    return dict(ChainMap(own, *reversed(shared)))


def with_tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with tuples for lists, as diffusers and timm have them by default."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()}


def named_function(named: str | list[Any], functions: Mapping[str, Any]) -> Any:
    """The function of a name; of a list, the result of its first function for the rest of it."""
    if isinstance(named, str):
        return functions[named]
    return functions[named[0]](*named[1:])


def transformers_models(section: str, functions: Mapping[str, Any]) -> list[Configuration]:
    """The models of transformers in a section of the file.

    Args:
        functions: by name, the functions that entries name: of inputs, and of losses. A list of
            names instead is a loss of these outputs.
    """

    def loss_of(loss: str | list[str]) -> Any:
        return functions[loss] if isinstance(loss, str) else squares(*loss)

    return [
        transformers_model(
            entry["kind"],
            entry["model"],
            named_function(entry["inputs"], functions),
            entry["settings"],
            loss_of(entry["loss"]) if "loss" in entry else returned,
        )
        for entry in entries(section)
    ]


def ids(vocabulary: int, *shape: int) -> torch.Tensor:
    """Words at random; the first four stand for special ones and do not occur."""
    return torch.randint(4, vocabulary, shape or (BATCH, LENGTH))


def pictures(pixels: int = PIXELS, channels: int = 3) -> torch.Tensor:
    """A batch of pictures at random."""
    return torch.randn(BATCH, channels, pixels, pixels)


def classes(count: int, *shape: int) -> torch.Tensor:
    """Labels at random."""
    return torch.randint(count, shape or (BATCH,))


def tokenized(config: Any) -> dict[str, torch.Tensor]:
    """The output of a tokenizer for sentences of equal length."""
    words = ids(config.vocab_size)
    return {"input_ids": words, "attention_mask": torch.ones_like(words)}
