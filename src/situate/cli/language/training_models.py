"""Models to train by name: files, sizes, networks of the zoo, and functions that build a model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from situate import zoo
from situate.errors import ReadError, SituateError
from situate.files.contents import one_line
from situate.language.training.transformer import (
    Transformer,
    parse_sizes,
    read_transformer,
    transformer_of_values,
)
from situate.zoo.networks import network

REMEDY = "give sizes, such as layers=12,hidden=768,heads=12,vocab=30522"


def find_transformer(text: str) -> Transformer:
    """The transformer of a `config.json`, a folder with one, a text of sizes, a network of the zoo,
    or `package.module:function` whose model has a configuration of transformers.

    Raises:
        ReadError: a configuration has an unknown architecture or absurd sizes.
        SituateError: the model is none of these, or no decoder of equal layers.
    """
    if text in zoo.names():
        return _of_zoo(text)
    if re.fullmatch(r"[\w.]+:\w+", text):
        return _of_code(text)
    return read_transformer(text)


def _of_zoo(name: str) -> Transformer:
    sizes = network(name)[0].sizes
    if not sizes:
        names = ", ".join(
            network_name for network_name in zoo.names() if network(network_name)[0].sizes
        )
        raise SituateError(
            f"{name}: layouts divide decoders of equal layers, in the zoo {names}: take one, or "
            f"{REMEDY}"
        )
    return replace(parse_sizes(sizes), name=name)


def _of_code(text: str) -> Transformer:
    """The transformer of a model that code builds, on tensors without data."""
    from situate.torch_capture import check_installed
    from situate.torch_capture.build import build_fake
    from situate.torch_capture.function import current_directory, find_function

    check_installed()
    with current_directory():
        build, _ = find_function(text)
        model = build_fake(build, text).model
    try:
        return transformer_of_values(_config_values(model, text), text.partition(":")[2])
    except ReadError as error:
        raise ReadError(one_line(f"{text}: its config {error}: {REMEDY}")) from None


def _config_values(model: Any, text: str) -> dict[str, Any]:
    """The values of a model's configuration.

    Raises:
        SituateError: it has none.
    """
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if hasattr(config, "to_dict") and getattr(config, "model_type", None):
            values: dict[str, Any] = config.to_dict()
            return values
    raise SituateError(f"{text}: its model has no config of transformers: {REMEDY}")
