"""The sizes of a transformer on which the time and the memory of a training step depend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from situate.errors import ReadError, SituateError, nearest
from situate.files.contents import one_line
from situate.language.config import CONFIG, Config, config_of, model_name, read_values
from situate.language.hyperparameters import MAX_EXPERTS, MAX_LAYERS, Experts
from situate.language.model import gguf_shapes

MAX_PARAMETERS = 10**15

LIMITS = {
    "layers": MAX_LAYERS, "hidden": 2**20, "heads": 2**16, "kv": 2**16, "head": 2**16,
    "ffn": 2**22, "vocab": 2**24, "experts": MAX_EXPERTS, "used": MAX_EXPERTS,
    "expert": 2**22, "positions": 2**24, "matrices": 3, "tied": 1,
}  # fmt: skip
"""Largest sizes by their key in a text."""


@dataclass(frozen=True)
class Transformer:
    """A decoder of equal layers.

    Attributes:
        name: of the model.
        layers: number of layers.
        hidden: width of the residual stream.
        heads, kv_heads: of queries, and of keys and values.
        head, value_head: sizes of a head of queries and keys, and of values.
        ffn: width of the feed-forward network of a dense layer.
        vocabulary: tokens.
        attention_weights: elements of the matrices of a layer's attention.
        norm_weights: elements of a layer that tensor parallelism leaves whole.
        gated: the feed-forward network multiplies by a gate, with three matrices instead of two.
        tied: the output uses the matrix of the embedding.
        positions: learned positions; 0 with rotary ones.
        experts: None in a dense model.
        window: tokens that a layer with a sliding window sees; 0 without windows.
        windowed: share of the layers with a window.
        context: tokens that the model was trained for; 0 if unknown.
        latent: width of compressed queries, keys and values (multi-head latent attention), whose
            matrices tensor parallelism leaves whole.
        head_weights: elements between the last layer and the output, such as BERT's dense layer and
            pooler, which tensor parallelism leaves whole.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    value_head: int
    ffn: int
    vocabulary: int
    attention_weights: int
    norm_weights: int
    gated: bool = True
    tied: bool = False
    positions: int = 0
    experts: Experts | None = None
    window: int = 0
    windowed: float = 0.0
    context: int = 0
    latent: int = 0
    head_weights: int = 0

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward network."""
        return 3 if self.gated else 2

    @property
    def expert_layers(self) -> int:
        """Layers with a mixture of experts."""
        return 0 if self.experts is None else self.layers - self.experts.dense_layers

    @property
    def network_weights(self) -> int:
        """Elements of a layer's feed-forward network without experts."""
        return self.matrices * self.hidden * self.ffn

    @property
    def shared_weights(self) -> int:
        """Elements of the shared experts of a layer."""
        return self.matrices * self.hidden * self.experts.shared_width if self.experts else 0

    @property
    def router_weights(self) -> int:
        """Elements of a layer's router."""
        return self.hidden * self.experts.count if self.experts else 0

    @property
    def expert_weights(self) -> int:
        """Elements of one expert."""
        return self.matrices * self.hidden * self.experts.width if self.experts else 0

    @property
    def embedding_weights(self) -> int:
        """Elements of the embedding."""
        return self.vocabulary * self.hidden

    @property
    def layer_weights(self) -> int:
        """Elements of all layers."""
        mixture = self.shared_weights + self.router_weights
        if self.experts is not None:
            mixture += self.experts.count * self.expert_weights
        dense = self.layers - self.expert_layers
        common = self.attention_weights + self.norm_weights
        return self.layers * common + dense * self.network_weights + self.expert_layers * mixture

    @property
    def parameters(self) -> int:
        """Elements of all tensors; a tied embedding counts once."""
        ends = self.embedding_weights * (1 if self.tied else 2)
        vectors = self.positions * self.hidden + self.hidden
        return self.layer_weights + ends + vectors + self.head_weights

    @property
    def active_parameters(self) -> int:
        """Elements of the tensors that one token passes through."""
        if self.experts is None:
            return self.parameters
        idle = self.experts.count - self.experts.used
        return self.parameters - self.expert_layers * idle * self.expert_weights

    def flops(self, sequence: int) -> float:
        """Floating-point operations of a token in a training step, without repeated ones.

        Six for each weight of a matrix, and those of causal attention (Narayanan et al.,
        arXiv:2104.04473, appendix, which counts attention without the causal half).
        """
        matrices = self.active_parameters - self.embedding_weights * (0 if self.tied else 1)
        matrices -= self.positions * self.hidden
        keys = self.attended(sequence)
        pairs = self.layers * self.heads * (self.head + self.value_head) * keys
        return 6.0 * matrices + 6.0 * pairs

    def attended(self, sequence: int) -> float:
        """Keys that a token sees, in the mean over tokens and layers."""
        whole = sequence / 2
        if not self.window or sequence <= self.window:
            return whole
        # The first `window` tokens see half of it in the mean, the others all of it.
        inside = self.window * (1 - self.window / (2 * sequence))
        return self.windowed * inside + (1 - self.windowed) * whole


@dataclass(frozen=True)
class Sizes:
    """The sizes of a transformer with the usual tensors; 0 stands for the usual ones.

    Attributes:
        layers, hidden, heads, vocabulary: as in `Transformer`.
        kv_heads: as many as heads of queries by default.
        head: `hidden / heads` by default.
        ffn: four times `hidden` by default.
        gated, tied, positions, experts: as in `Transformer`.
        biases: matrices and normalisations have biases.
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    kv_heads: int = 0
    head: int = 0
    ffn: int = 0
    gated: bool = True
    tied: bool = False
    biases: bool = False
    positions: int = 0
    experts: Experts | None = None


def transformer_of_sizes(name: str, sizes: Sizes) -> Transformer:
    """A transformer of these sizes.

    Raises:
        SituateError: the heads do not divide the width, or the heads of keys those of queries.
    """
    hidden, heads = sizes.hidden, sizes.heads
    kv_heads = sizes.kv_heads or heads
    if not sizes.head and hidden % heads:
        raise SituateError(f"hidden {hidden} is no multiple of heads {heads}: give head too")
    if heads % kv_heads:
        raise SituateError(f"heads {heads} is no multiple of kv {kv_heads}")
    head = sizes.head or hidden // heads
    ffn = sizes.ffn or 4 * hidden
    joint = (heads + 2 * kv_heads) * head
    norms = 2 * hidden
    if sizes.biases:
        # Biases of both normalisations, of both outputs, of queries, keys and values, and of the
        # network's first matrices.
        norms += 4 * hidden + joint + (2 if sizes.gated else 1) * ffn
    return Transformer(
        name=name,
        layers=sizes.layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head=head,
        value_head=head,
        ffn=ffn,
        vocabulary=sizes.vocabulary,
        attention_weights=hidden * (joint + heads * head),
        norm_weights=norms,
        gated=sizes.gated,
        tied=sizes.tied,
        positions=sizes.positions,
        experts=sizes.experts,
    )


def parse_sizes(text: str) -> Transformer:
    """A transformer of a text such as `layers=32,hidden=4096,heads=32,kv=8,vocab=128256`.

    Raises:
        SituateError: a key is unknown, missing or twice there, or a size is absurd.
    """
    sizes = parse_integers(text, LIMITS, "model")
    for key in ("layers", "hidden", "heads", "vocab"):
        if key not in sizes:
            raise SituateError(f"model {text[:60]!r}: has no {key}=")
    if sizes.get("matrices", 3) == 1:
        raise SituateError("model: matrices: must be 2, or 3 with a gate")
    experts = None
    if count := sizes.get("experts", 0):
        used = sizes.get("used", 2)
        if used > count:
            raise SituateError(f"model: used {used} is more than experts {count}")
        width = sizes.get("expert", sizes.get("ffn", 4 * sizes["hidden"]))
        experts = Experts(count, used, width, 0, 0)
    return transformer_of_sizes(
        text,
        Sizes(
            layers=sizes["layers"],
            hidden=sizes["hidden"],
            heads=sizes["heads"],
            kv_heads=sizes.get("kv", 0),
            head=sizes.get("head", 0),
            ffn=sizes.get("ffn", 0),
            vocabulary=sizes["vocab"],
            gated=sizes.get("matrices", 3) == 3,
            tied="tied" in sizes,
            positions=sizes.get("positions", 0),
            experts=experts,
        ),
    )


def parse_integers(text: str, limits: Mapping[str, int], where: str) -> dict[str, int]:
    """Positive integers by key from a text such as `a=1,b=2`.

    Args:
        text: pairs with commas between them.
        limits: the largest value of each key that may be there.
        where: the beginning of messages.

    Raises:
        SituateError: a key is unknown or there twice, or a value is no integer in its limits.
    """
    values: dict[str, int] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in limits:
            hint = nearest(key, limits)
            raise SituateError(one_line(f"{where}: {part.strip()[:40]!r} is no KEY=NUMBER{hint}"))
        if key in values:
            raise SituateError(f"{where}: {key} is there twice")
        if not re.fullmatch(r"\d{1,12}", value) or not 1 <= int(value) <= limits[key]:
            problem = f"must be an integer from 1 to {limits[key]}, got {value[:40]!r}"
            raise SituateError(one_line(f"{where}: {key}: {problem}"))
        values[key] = int(value)
    return values


def read_transformer(text: str) -> Transformer:
    """The transformer of a `config.json`, a folder with one, or a text of sizes.

    Raises:
        ReadError: the file cannot be read, or has an unknown architecture or absurd sizes.
        SituateError: the text is none of these.
    """
    path = Path(text)
    if "=" in text and not path.exists():
        return _checked(parse_sizes(text))
    path = path / CONFIG if path.is_dir() else path
    try:
        return transformer_of_values(read_values(path), model_name(path))
    except ReadError as error:
        raise ReadError(one_line(f"{text}: {error}")) from None


def transformer_of_values(values: dict[str, Any], name: str) -> Transformer:
    """The transformer of a configuration's values.

    Raises:
        ReadError: the architecture is unknown, or a size is missing or absurd.
    """
    if values.get("model_type") == "gpt2":
        return _checked(_gpt2(values, name))
    return _checked(transformer_of_config(config_of(values), name))


def _gpt2(values: Mapping[str, Any], name: str) -> Transformer:
    """GPT-2, whose output is its embedding (`transformers.GPT2Config`)."""
    positions = _positive({"n_positions": 1024, **values}, "n_positions")
    sizes = Sizes(
        layers=_positive(values, "n_layer"),
        hidden=_positive(values, "n_embd"),
        heads=_positive(values, "n_head"),
        vocabulary=_positive(values, "vocab_size"),
        ffn=_positive(values, "n_inner") if values.get("n_inner") else 0,
        gated=False,
        tied=True,
        biases=True,
        positions=positions,
    )
    try:
        return replace(transformer_of_sizes(name, sizes), context=positions)
    except SituateError as error:
        raise ReadError(str(error)) from None


def _positive(values: Mapping[str, Any], key: str) -> int:
    value = values.get(key)
    if not isinstance(value, int) or not 1 <= value < 2**31:
        raise ReadError(f"{key}: must be a positive integer")
    return value


def transformer_of_config(config: Config, name: str) -> Transformer:
    """The transformer of a configuration.

    Raises:
        ReadError: it has recurrent layers, or no attention.
    """
    sizes = config.sizes
    if any(sizes.recurrent) or not all(sizes.attentive):
        kind = config.architecture.name
        raise ReadError(f"{kind} has layers without attention, whose training is not modelled")
    _check_heads(sizes.width, max(sizes.heads), max(sizes.kv_heads), sizes.key_size)
    shapes = gguf_shapes(config.architecture, sizes, config.tied)
    inner = {key: shape for key, shape in shapes.items() if key.startswith("blk.")}
    rows = range(sizes.layers)
    attention = sum(_elements(inner, i, matrices=True) for i in rows)
    vectors = sum(_elements(inner, i, matrices=False) for i in rows)
    latent = sizes.latent
    return Transformer(
        name=name,
        layers=sizes.layers,
        hidden=sizes.width,
        heads=max(sizes.heads),
        # Latent attention decompresses keys and values for every head.
        kv_heads=max(sizes.heads) if latent else max(sizes.kv_heads),
        head=latent.key if latent else sizes.key_size,
        value_head=latent.value if latent else sizes.value_size,
        ffn=max(sizes.hidden),
        vocabulary=sizes.vocabulary,
        attention_weights=round(attention / sizes.layers),
        norm_weights=round(vectors / sizes.layers),
        gated=any("ffn_gate" in key for key in inner) or _is_fused(inner, sizes.hidden),
        tied=config.tied,
        experts=sizes.experts,
        window=sizes.window if any(sizes.windowed) else 0,
        windowed=sum(sizes.windowed) / sizes.layers,
        context=sizes.context,
        latent=latent.query_rank + latent.cache_rank + latent.rope if latent else 0,
    )


def _check_heads(width: int, heads: int, kv_heads: int, head: int) -> None:
    """
    Raises:
        ReadError: the heads do not divide the width, or the heads of keys those of queries.
    """
    if width % heads and head == width // heads:
        raise ReadError(
            f"num_attention_heads {heads} does not divide hidden_size {width}: give head_dim"
        )
    if heads % kv_heads:
        raise ReadError(
            f"num_key_value_heads {kv_heads} does not divide num_attention_heads {heads}"
        )


def _elements(shapes: Mapping[str, tuple[int, ...]], layer: int, matrices: bool) -> int:
    """Elements of a layer's matrices of attention, or of all its vectors."""
    start = f"blk.{layer}."
    return sum(
        prod(shape)
        for name, shape in shapes.items()
        if name.startswith(start)
        and (len(shape) > 1 and name.startswith(f"{start}attn_") if matrices else len(shape) == 1)
    )


def _is_fused(shapes: Mapping[str, tuple[int, ...]], hidden: tuple[int, ...]) -> bool:
    """True if gate and first matrix of the feed-forward network are one tensor."""
    rows = (shape for name, shape in shapes.items() if name.endswith("ffn_up.weight"))
    return any(shape[-1] == 2 * max(hidden) for shape in rows)


def _checked(model: Transformer) -> Transformer:
    if not (model.layers and model.hidden and model.heads and model.head):
        raise ReadError("has a size of 0: it is no transformer")
    if model.parameters > MAX_PARAMETERS:
        raise ReadError(
            f"has {model.parameters / 1e12:,.0f} trillion parameters: the sizes are absurd"
        )
    return model
