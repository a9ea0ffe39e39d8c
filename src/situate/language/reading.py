"""Language models by the path of a GGUF file, a `config.json`, or a folder with one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from situate.errors import ReadError, SituateError
from situate.files.contents import one_line
from situate.language import gguf
from situate.language.architectures import named_architecture
from situate.language.config import CONFIG, Config, is_config, model_name, read_config
from situate.language.gguf import Header
from situate.language.model import (
    LanguageModel,
    Weight,
    assemble,
    gguf_layer,
    gguf_role,
    gguf_shapes,
    typed_weights,
)
from situate.language.quantization import NUMBERED_FILE_TYPES, find_file_type, quantized_types
from situate.language.safetensors_headers import read_weights


def is_language_model(text: str | Path) -> bool:
    """True if `text` names a GGUF file, a `config.json` of a model, or a folder with one."""
    path = Path(text)
    try:
        if path.is_dir():
            return (path / CONFIG).is_file()
        return path.is_file() and (gguf.is_gguf(path) or is_config(path))
    except (OSError, ValueError):
        return False


def read_language_model(path: str | Path, quant: str | None = None) -> LanguageModel:
    """The model in a file or a folder.

    Args:
        path: a GGUF file or the beginning of it that holds its header, or one of several splits;
            a folder with `config.json` and safetensors files, or their first bytes; or a
            `config.json` alone.
        quant: the file type that llama-quantize would make of a `config.json` or a folder, such
            as `Q4_K_M`. By default a folder with safetensors files is taken as it is.

    Raises:
        ReadError: one line that begins with the path: what cannot be read, or the architecture
            that situate does not know.
        SituateError: `quant` is no file type, is missing, or stands beside a GGUF file.
    """
    file_type = None if quant is None else find_file_type(quant)
    text, path = os.fspath(path), Path(path)
    if gguf.is_gguf(path):
        if file_type is not None:
            raise SituateError(f"{text}: a GGUF file has its own types: leave --quant out")
        header = gguf.read(path)
        return _with_path(text, lambda: _model_of_header(header, path.stem))
    return _with_path(text, lambda: _from_config(path, file_type))


def _with_path(path: str, action: Callable[[], LanguageModel]) -> LanguageModel:
    try:
        return action()
    except SituateError as error:
        raise type(error)(one_line(f"{path}: {error}")) from None


def _model_of_header(header: Header, name: str) -> LanguageModel:
    """The model of a GGUF header.

    Args:
        header: of one file, or of all splits together.
        name: of the model, if the header has none.

    Raises:
        ReadError: the architecture is unknown, sizes are missing or absurd, or layers have no
            tensors.
    """
    kind = header.metadata.get("general.architecture")
    if not isinstance(kind, str):
        raise ReadError("has no general.architecture")
    if not header.tensors:
        raise ReadError("has no tensors: it holds a vocabulary alone")
    sizes = named_architecture(kind).sizes(header.metadata)
    weights = [
        Weight(info.name, info.shape, info.type, info.size, role, layer)
        for info in header.tensors
        for layer in [gguf_layer(info.name)]
        for role in [gguf_role(info.name, layer, sizes.layers)]
    ]
    title = header.metadata.get("general.name")
    number = header.metadata.get("general.file_type")
    return assemble(
        weights,
        sizes,
        title if isinstance(title, str) and title else name,
        "gguf",
        NUMBERED_FILE_TYPES.get(number) if isinstance(number, int) else None,
        header.complete,
    )


def _from_config(path: Path, file_type: str | None) -> LanguageModel:
    folder = path if path.is_dir() else None
    file = path / CONFIG if folder else path
    config = read_config(file)
    weights = read_weights(folder, config.sizes.layers) if folder else []
    name = model_name(file)
    if file_type is not None:
        untied = any(weight.role == "output" for weight in weights)
        return model_of_config(config, file_type, name, untied)
    if not weights:
        raise SituateError("holds no types: give --quant, such as --quant Q4_K_M")
    return assemble(weights, config.sizes, name, "safetensors", warnings=_notes(config))


def model_of_config(
    config: Config, file_type: str, name: str, untied: bool = False
) -> LanguageModel:
    """The model of a configuration, quantised by llama-quantize's rules.

    Args:
        config: architecture and sizes.
        file_type: such as `Q4_K_M`.
        name: of the model.
        untied: the files have a matrix of the output, whatever the configuration says.

    Raises:
        ReadError: the sizes make no model.
    """
    tied = config.tied and not untied
    shapes = {**gguf_shapes(config.architecture, config.sizes, tied), **config.constants}
    types = quantized_types(config.sizes, shapes, file_type)
    weights = typed_weights(shapes, types, config.sizes.layers)
    return assemble(weights, config.sizes, name, "config", file_type, complete=False)


def _notes(config: Config) -> tuple[str, ...]:
    if config.packed is None:
        return ()
    return (
        f"the weights are packed ({config.packed}): parameters count the numbers as they are "
        "stored",
    )
