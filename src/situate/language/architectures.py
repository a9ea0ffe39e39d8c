"""Architectures of language models: their tensors, and the attention of each layer.

One row of `ARCHITECTURES` is one architecture. To add one, write the tensors of a layer in
`layer_shapes.py`, of the parts there where they fit. Then add a row with GGUF's name, the
`model_type` of its `config.json`, and anything in which its layers or its configuration differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from situate.errors import ReadError, nearest
from situate.language import layer_shapes as layers
from situate.language.gguf import Value
from situate.language.hyperparameters import (
    MAX_LAYERS,
    Hyperparameters,
    Keys,
    read_experts,
    read_latent,
    read_recurrence,
)
from situate.language.layer_parts import Shapes

Layer = Callable[[Hyperparameters, int], Shapes]
"""The tensors of a layer by its number."""

# Translations of config.json to the keys of GGUF, where an architecture has keys of its own.
Translation = dict[str, str]
"""GGUF's key by the key in config.json."""

DELTA_NET: Translation = {
    "linear_conv_kernel_dim": "ssm.conv_kernel",
    "linear_key_head_dim": "ssm.state_size",
    "linear_num_key_heads": "ssm.group_count",
    "linear_num_value_heads": "ssm.time_step_rank",
}
MAMBA: Translation = {
    "conv_kernel": "ssm.conv_kernel",
    "state_size": "ssm.state_size",
    "n_groups": "ssm.group_count",
    "num_heads": "ssm.time_step_rank",
}
FALCON_H1: Translation = {
    "mamba_d_conv": "ssm.conv_kernel",
    "mamba_d_state": "ssm.state_size",
    "mamba_n_groups": "ssm.group_count",
    "mamba_n_heads": "ssm.time_step_rank",
    "mamba_d_ssm": "ssm.inner_size",
}
GEMMA3_DEFAULTS: Mapping[str, Value] = {
    "head_dim": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131072,
    "vocab_size": 262144,
}
"""Sizes that some configurations of Gemma 3 leave out."""


@dataclass(frozen=True)
class Architecture:
    """An architecture.

    Attributes:
        name: `general.architecture` in GGUF.
        layer: its tensors.
        model_types: in `config.json`.
        tied: whether the output's matrix is the embedding where `config.json` does not say.
        never_untied: GGUF files have no matrix of their own for the output.
        window_pattern: every so manieth layer sees the whole context and the others a window, 0
            if windows are not used; where GGUF does not say.
        window: size of the window where GGUF does not say.
        recurrent: layers with a recurrent state; `most`: all but one in four or as the keys say.
        renamed: keys of `config.json` by those of GGUF, beside `COMMON`.
        defaults: values that `config.json` may lack.
        norm_bias: the last normalisation has a bias.
    """

    name: str
    layer: Layer
    model_types: tuple[str, ...]
    tied: bool = False
    never_untied: bool = False
    window_pattern: int = 0
    window: int = 0
    recurrent: Literal["no", "most", "all", "beside attention"] = "no"
    renamed: Translation = field(default_factory=dict)
    defaults: Mapping[str, Value] = field(default_factory=dict)
    norm_bias: bool = False

    def sizes(self, metadata: Mapping[str, Value]) -> Hyperparameters:
        """The sizes of a model by the metadata of its GGUF file.

        Raises:
            ReadError: a key is missing or absurd.
        """
        keys = Keys(self.name, metadata)
        total = keys.size("block_count", None, MAX_LAYERS)
        draft = keys.size("nextn_predict_layers", 0, total)
        if total == draft:
            raise ReadError(f"{self.name}.block_count: no layers")
        width = keys.size("embedding_length")
        attentive = self.recurrent != "all"
        heads = keys.sizes("attention.head_count", total, None if attentive else 0)
        kv_heads = keys.sizes("attention.head_count_kv", total, max(heads))
        head = width // max(heads) if max(heads) else 0
        hidden = keys.sizes("feed_forward_length", total, 0)
        window, windowed = self._windows(keys, total - draft)
        recurrent = self._recurrent(keys, total, draft)
        key_size = keys.size("attention.key_length", head)
        return Hyperparameters(
            architecture=self.name,
            layers=total - draft,
            draft_layers=draft,
            width=width,
            vocabulary=keys.size("vocab_size", keys.length("tokenizer.ggml.tokens")),
            context=keys.size("context_length", 0),
            heads=heads,
            kv_heads=kv_heads,
            key_size=key_size,
            value_size=keys.size("attention.value_length", head),
            rotary=keys.size("rope.dimension_count", key_size),
            hidden=hidden,
            experts=read_experts(keys, max(hidden)),
            latent=read_latent(keys),
            recurrence=read_recurrence(keys),
            window=window,
            windowed=windowed + (False,) * draft,
            recurrent=recurrent,
            attentive=tuple(
                attentive and not (state and self.recurrent == "most") for state in recurrent
            ),
        )

    def _windows(self, keys: Keys, layers: int) -> tuple[int, tuple[bool, ...]]:
        """The size of the sliding window, and the layers that it limits."""
        window = keys.size("attention.sliding_window", self.window) if self.window_pattern else 0
        if not window:
            return 0, (False,) * layers
        pattern = keys.metadata.get(f"{self.name}.attention.sliding_window_pattern")
        if isinstance(pattern, tuple) and len(pattern) >= layers:
            return window, tuple(bool(entry) for entry in pattern[:layers])
        period = keys.size("attention.sliding_window_pattern", self.window_pattern)
        # The last layer of a period sees all tokens; a period of 0 limits every layer.
        return window, tuple(not period or i % period < period - 1 for i in range(layers))

    def _recurrent(self, keys: Keys, layers: int, draft: int) -> tuple[bool, ...]:
        if self.recurrent != "most":
            return (self.recurrent != "no",) * layers
        marks = keys.metadata.get(f"{self.name}.attention.recurrent_layers")
        if isinstance(marks, tuple) and len(marks) >= layers:
            return tuple(bool(mark) for mark in marks[:layers])
        period = keys.size("full_attention_interval", 4)
        if not period:
            raise ReadError(f"{self.name}.full_attention_interval: must be at least 1, got 0")
        # The last layer of a period has attention, and so has every layer of the draft head.
        return tuple(i < layers - draft and (i + 1) % period != 0 for i in range(layers))


ARCHITECTURES = {
    entry.name: entry
    for entry in (
        Architecture("llama", layers.llama, ("llama", "mistral", "mixtral")),
        Architecture("qwen2", layers.qwen2, ("qwen2",)),
        Architecture("qwen2moe", layers.qwen2moe, ("qwen2_moe",)),
        Architecture("qwen3", layers.qwen3, ("qwen3",)),
        Architecture("qwen3moe", layers.qwen3, ("qwen3_moe",)),
        Architecture("gpt-oss", layers.gpt_oss, ("gpt_oss",), window_pattern=2, window=128),
        Architecture(
            "gemma2",
            layers.gemma2,
            ("gemma2",),
            tied=True,
            never_untied=True,
            window_pattern=2,
            window=4096,
        ),
        Architecture(
            "gemma3",
            layers.gemma3,
            ("gemma3", "gemma3_text"),
            tied=True,
            window_pattern=6,
            defaults=GEMMA3_DEFAULTS,
        ),
        Architecture("phi3", layers.phi3, ("phi3",)),
        Architecture("deepseek2", layers.deepseek2, ("deepseek_v2", "deepseek_v3", "kimi_k2")),
        Architecture("glm4", layers.glm4, ("glm4",)),
        Architecture("glm4moe", layers.glm4moe, ("glm4_moe",)),
        Architecture(
            "qwen3next", layers.qwen3next, ("qwen3_next",), recurrent="most", renamed=DELTA_NET
        ),
        Architecture(
            "qwen35",
            layers.qwen35,
            ("qwen3_5", "qwen3_5_text"),
            recurrent="most",
            renamed=DELTA_NET,
        ),
        Architecture(
            "qwen35moe",
            layers.qwen35,
            ("qwen3_5_moe", "qwen3_5_moe_text"),
            recurrent="most",
            renamed=DELTA_NET,
        ),
        Architecture(
            "mamba2",
            layers.mamba2,
            ("mamba2",),
            recurrent="all",
            renamed=MAMBA,
            defaults={"conv_kernel": 4, "state_size": 128, "n_groups": 1, "head_dim": 64},
        ),
        Architecture(
            "falcon-h1",
            layers.falcon_h1,
            ("falcon_h1",),
            recurrent="beside attention",
            renamed=FALCON_H1,
        ),
        Architecture("command-r", layers.command_r, ("cohere",), tied=True, never_untied=True),
        Architecture(
            "cohere2",
            layers.command_r,
            ("cohere2",),
            tied=True,
            never_untied=True,
            window_pattern=4,
        ),
        Architecture("bitnet", layers.bitnet, ("bitnet",), tied=True),
        Architecture("starcoder2", layers.starcoder2, ("starcoder2",), tied=True, norm_bias=True),
    )
}
"""All architectures, by the name that GGUF has for them."""

BY_MODEL_TYPE = {
    model_type: entry for entry in ARCHITECTURES.values() for model_type in entry.model_types
}
"""All architectures, by the `model_type` of their `config.json`."""

HOW_TO_ADD = "docs/formats/language-models.md shows how to add one"


def named_architecture(name: str) -> Architecture:
    """The architecture that GGUF calls `name`.

    Raises:
        ReadError: the table has none of that name.
    """
    return _known(ARCHITECTURES, name, "the architecture")


def configured_architecture(model_type: str) -> Architecture:
    """The architecture of a `config.json` with that `model_type`.

    Raises:
        ReadError: the table has none of that type.
    """
    return _known(BY_MODEL_TYPE, model_type, "the model_type")


def _known(table: Mapping[str, Architecture], name: str, noun: str) -> Architecture:
    if name in table:
        return table[name]
    hint = nearest(name, table)
    raise ReadError(f"has {noun} {name!r}, which situate does not know{hint}; {HOW_TO_ADD}")
