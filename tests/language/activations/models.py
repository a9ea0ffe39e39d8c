"""The models of `benchmarks.homes.llamacpp`, without their files."""

from __future__ import annotations

from functools import cache

from benchmarks.homes.llamacpp.model_files import COMMON, FULL_SIZE, MODELS
from situate.language.activations.blocks import PassOptions
from situate.language.architectures import named_architecture
from situate.language.cache import CacheOptions
from situate.language.model import LanguageModel, assemble, gguf_shapes, typed_weights
from situate.language.quantization import quantized_types
from situate.language.tensor_types import TYPES


@cache
def model(name: str) -> LanguageModel:
    """A small model with matrices in Q8_0, or a full-size one."""
    kind, file_type, values = (name, None, MODELS[name]) if name in MODELS else FULL_SIZE[name]
    architecture = named_architecture(kind)
    metadata = {f"{kind}.{key}": value for key, value in {**COMMON, **values}.items()}
    sizes = architecture.sizes(metadata)
    shapes = gguf_shapes(architecture, sizes, architecture.tied)
    if file_type is None:
        types = {
            tensor: TYPES[
                "Q8_0"
                if len(shape) > 1 and "ffn_gate_inp" not in tensor and not tensor.endswith("bias")
                else "F32"
            ]
            for tensor, shape in shapes.items()
        }
    else:
        types = quantized_types(sizes, shapes, file_type)
    return assemble(typed_weights(shapes, types, sizes.layers), sizes, name, "gguf")


def options(cache_options: CacheOptions, host: int = 1, **changes: bool | int) -> PassOptions:
    """The options of a pass with flash attention and logits of one token."""
    values = {
        "outputs": 1,
        "flash": True,
        "early": False,
        "cache_on_host": False,
        "converts": False,
        "enforced": True,
        **changes,
    }
    return PassOptions(cache_options, host=host, **values)
