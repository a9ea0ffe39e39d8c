"""The ops of a layer: attention, feed-forward network, mixture of experts.

After `src/llama-graph.cpp` and `src/models/` of llama.cpp. The weights of a layer say which ops it
has: a bias adds an op, a normalisation another. `PASS` says the rest, by architecture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from situate.language.activations.tensors import (
    F16,
    F32,
    I32,
    I64,
    Graph,
    Tensor,
    entry,
    part,
    stored,
    view,
)
from situate.language.cache import CacheOptions, cache_type
from situate.language.hyperparameters import Hyperparameters


class Matrix(NamedTuple):
    """A weight: its shape, its bytes, and its device as a number of the scheduler."""

    shape: tuple[int, ...]
    size: int
    place: int

    def tensor(self) -> Tensor:
        """The weight as a leaf of a graph."""
        return stored(self.shape, self.size, self.place, weight=True)


class Block(NamedTuple):
    """A layer.

    Attributes:
        place: device of the layer and of its cache, as a number of the scheduler.
        window: its attention sees a sliding window.
        weights: (name, matrix) of its tensors.
    """

    place: int
    window: bool
    weights: tuple[tuple[str, Matrix], ...]


@dataclass(frozen=True)
class PassOptions:
    """The options of a pass.

    Attributes:
        cache: options of the cache, with the ubatch.
        outputs: tokens with logits.
        flash: flash attention.
        early: as builds of 2025 did: masks are 32-bit, and converted where they are used.
        cache_on_host: all keys and values are in host memory.
        converts: GPUs convert quantised keys and values to 16 bits before attention, as CUDA does.
        enforced: llama.cpp chooses the devices of some ops itself.
        host: number of the host among the devices.
    """

    cache: CacheOptions
    outputs: int
    flash: bool
    early: bool
    cache_on_host: bool
    converts: bool
    enforced: bool
    host: int


@dataclass(frozen=True)
class Traits:
    """Ops that the weights of a layer do not show.

    Attributes:
        parallel: attention and network read the same normalised input.
        residual_first: the residual stream is the first term of the sum behind a network.
        centred: normalisations subtract the mean, and are not computed in place.
        window_positions: layers that see the whole context have no rotary positions.
        scaled_embedding, scaled_queries: a factor.
        rows_last: tokens without logits are left out behind the last layer, not inside it.
    """

    parallel: bool = False
    residual_first: bool = False
    centred: bool = False
    window_positions: bool = False
    scaled_embedding: bool = False
    scaled_queries: bool = False
    rows_last: bool = False


PASS: Mapping[str, Traits] = {
    "llama": Traits(),
    "qwen2": Traits(),
    "qwen2moe": Traits(),
    "qwen3": Traits(),
    "qwen3moe": Traits(),
    "gpt-oss": Traits(rows_last=True),
    "gemma2": Traits(scaled_embedding=True, scaled_queries=True),
    "gemma3": Traits(scaled_embedding=True, scaled_queries=True),
    "phi3": Traits(scaled_queries=True, residual_first=True),
    "deepseek2": Traits(),
    "glm4": Traits(),
    "glm4moe": Traits(),
    "command-r": Traits(parallel=True, centred=True),
    "cohere2": Traits(parallel=True, centred=True, window_positions=True),
    "starcoder2": Traits(centred=True),
}
"""Architectures whose passes are replayed, by the name that GGUF has for them."""

ROTATION = 64
"""Heads whose size is a multiple of this are rotated before they are quantised."""


class PassBuilder:
    """The graph of one pass over a ubatch, layer by layer."""

    def __init__(self, sizes: Hyperparameters, options: PassOptions) -> None:
        self.sizes, self.options = sizes, options
        self.traits = PASS[sizes.architecture]
        self.graph = Graph()
        self.tokens = options.cache.ubatch
        slots = options.cache.slots
        if self.tokens % slots:
            self.tokens += slots - self.tokens % slots
        self.streams = options.cache.streams
        self.stream: Tensor
        self._block: Block

    # The inputs, the layers and the output.
    def begin(self, embedding: Tensor) -> None:
        """The embedding of the tokens, and the inputs of all layers."""
        width = self.sizes.width
        rows = self._op((width, self.tokens), embedding, entry((self.tokens,), I32), batch=0)
        self.stream = self.graph.expand(rows)
        if not self.options.early:
            # Vectors could come in place of tokens.
            self.graph.expand(entry((width, self.tokens)))
        if self.traits.scaled_embedding:
            self.stream = self._in_place(self.stream)
        self.positions = entry((self.tokens,), I32)
        self.outputs = entry((self.options.outputs,), I32)
        windows = (False, True) if any(self.sizes.windowed) else (False,)
        self.masks = {window: self._mask(window) for window in windows}
        self.key_rows = {window: entry((self.tokens,), I64) for window in windows}
        self.value_rows = {window: self._value_rows() for window in windows}
        self.rotations: dict[tuple[str, bool], Tensor] = {}

    def layer(self, block: Block, pinned: bool, last: bool) -> None:
        """Append a layer.

        Args:
            block: its weights and devices.
            pinned: its normalisations run where it lies, which llama.cpp enforces where all layers
                are on GPUs.
            last: tokens without logits are left out.
        """
        self._block, self._pinned = block, pinned
        self._weights = dict(block.weights)
        residual = self.stream
        normed = self._norm(residual, "attn_norm")
        cut = last and not self.traits.rows_last
        attention = self._attention(normed, block)
        if cut:
            attention = self._rows(attention)
            residual = self._rows(residual)
        if self.traits.parallel:
            network = self._network(self._rows(normed) if cut else normed)
            self.stream = self._in_place(self._in_place(network, residual), attention)
            return
        name = "ffn_norm"
        if self._has("ffn_norm.weight"):
            if self._has("post_attention_norm.weight"):
                attention = self._norm(attention, "post_attention_norm")
        else:
            name = "post_attention_norm"
        middle = self._in_place(attention, residual)
        result = self._network(self._norm(middle, name))
        if self._has("post_ffw_norm.weight"):
            result = self._norm(result, "post_ffw_norm", free=True)
        terms = (middle, result) if self.traits.residual_first else (result, middle)
        self.stream = self._in_place(*terms)

    def end(self, norm: Tensor, matrix: Tensor) -> Graph:
        """The last normalisation and the logits; returns the whole graph."""
        if self.traits.rows_last:
            # The last layer's result stays for models that guess further tokens.
            self.stream.permanent = True
            self.stream = self._rows(self.stream)
        normed = self._in_place(self._normalised(self.stream), norm)
        logits = self._op((self.sizes.vocabulary, *normed.shape[1:]), matrix, normed)
        logits.permanent = True
        self.graph.expand(logits)
        return self.graph

    # Ops.
    def _op(
        self,
        shape: tuple[int, ...],
        *sources: Tensor,
        element: int = F32,
        batch: int | None = None,
    ) -> Tensor:
        return Tensor(shape, sources, element, batch=batch)

    def _in_place(self, *sources: Tensor) -> Tensor:
        """An op that may write over its first input, of whose shape its result is."""
        return Tensor(sources[0].shape, sources, in_place=True)

    def _has(self, name: str) -> bool:
        return name in self._weights

    def _weight(self, name: str) -> Tensor:
        return self._weights[name].tensor()

    def _product(self, name: str, x: Tensor) -> Tensor:
        """A matrix product, with its bias."""
        weight = self._weight(f"{name}.weight")
        batch = x.shape[1] if len(x.shape) > 1 else 1
        result = self._op((weight.shape[1], *x.shape[1:]), weight, x, batch=batch)
        return self._biased(name, result)

    def _biased(self, name: str, x: Tensor) -> Tensor:
        bias = f"{name}.bias"
        return self._in_place(x, self._weight(bias)) if self._has(bias) else x

    def _norm(self, x: Tensor, name: str, free: bool = False) -> Tensor:
        """A normalisation with its weights; `free` if nothing pins it to the layer's device."""
        normed = self._normalised(x)
        if self._pinned and not free:
            normed.device = self._block.place
        return self._biased(name, self._in_place(normed, self._weight(f"{name}.weight")))

    def _normalised(self, x: Tensor) -> Tensor:
        return self._op(x.shape, x) if self.traits.centred else self._in_place(x)

    def _rows(self, x: Tensor) -> Tensor:
        """The tokens with logits."""
        return self._op((x.shape[0], self.options.outputs), x, self.outputs)

    # Attention.
    def _attention(self, x: Tensor, block: Block) -> Tensor:
        if self.sizes.latent is not None:
            return self._latent_attention(x)
        h, window = self.sizes, block.window
        heads = self._heads(block)
        queries, keys, values = self._projections(x, heads)
        queries, keys = self._turned(queries, "attn_q_norm"), self._turned(keys, "attn_k_norm")
        if self.traits.scaled_queries:
            queries = self._in_place(queries)
        queries = self._rotated(queries, "k", window)
        keys = self._rotated(keys, "k", window)
        values = self._rotated(values, "v", window)
        for tensor in (queries, keys, values) if self._keys_first() else (queries, values, keys):
            self.graph.expand(tensor)
        key_cache = self._store(keys, self.options.cache.key_type, self.key_rows[window], window)
        value_cache = self._store(
            values, self.options.cache.value_type, self.value_rows[window], window
        )
        result = self._mixed(queries, key_cache, value_cache, window, None)
        result = self._rotated(result, "v", window)
        return self._product("attn_output", result)

    def _keys_first(self) -> bool:
        return self.options.early or any(self.sizes.windowed)

    def _heads(self, block: Block) -> tuple[int, int]:
        """Heads of queries, and of keys and values."""
        weights = dict(block.weights)
        h = self.sizes
        if "attn_q.weight" in weights:
            queries = weights["attn_q.weight"].shape[1] // h.key_size
            return queries, weights["attn_k.weight"].shape[1] // h.key_size
        return max(h.heads), max(h.kv_heads)

    def _projections(self, x: Tensor, heads: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
        h = self.sizes
        shapes = [
            (h.key_size, heads[0], self.tokens),
            (h.key_size, heads[1], self.tokens),
            (h.value_size, heads[1], self.tokens),
        ]
        if self._has("attn_qkv.weight"):
            joint = self._product("attn_qkv", x)
            parts = [part(joint, shape) for shape in shapes]
        else:
            parts = [
                view(self._product(f"attn_{part}", x), shape)
                for part, shape in zip("qkv", shapes, strict=True)
            ]
        return parts[0], parts[1], parts[2]

    def _turned(self, x: Tensor, norm: str) -> Tensor:
        """Heads with their normalisation and rotary positions."""
        if self._has(f"{norm}.weight"):
            x = self._norm(x, norm)
        without = self.traits.window_positions and not self._block.window
        return x if without else self._rope(x)

    def _rope(self, x: Tensor) -> Tensor:
        turned = self._in_place(x, self.positions)
        turned.free_choice = True
        return turned

    def _rotated(self, x: Tensor, kind: str, window: bool) -> Tensor:
        """Heads after the rotation that comes before quantising, and after it back."""
        c, h = self.options.cache, self.sizes
        size, name = (h.key_size, c.key_type) if kind == "k" else (h.value_size, c.value_type)
        rotated = cache_type(name).quantized and size % ROTATION == 0 and h.latent is None
        if self.options.early or not rotated:
            return x
        side = ROTATION
        while kind == "k" and size % (2 * side) == 0:
            side *= 2
        key = kind, window
        if key not in self.rotations:
            self.rotations[key] = entry((side, side))
        count = 1
        for n in x.shape:
            count *= n
        flat = (side, count // side)
        rows = self._op(flat, x) if x.strided else view(x, flat)
        product = self._op(flat, self.rotations[key], rows)
        return view(product, x.shape)

    def _cache_place(self) -> int:
        return self.options.host if self.options.cache_on_host else self._block.place

    def _cells(self, window: bool) -> int:
        return self.options.cache.window_cells(self.sizes.window) if window else self.options.cache.cells

    def _store(self, x: Tensor, kind: str, rows: Tensor, window: bool) -> Tensor:
        """Write keys or values into their cache; returns a view of all that it holds."""
        width = x.shape[0] * x.shape[1]
        cells = self._cells(window)
        size = cache_type(kind).row_bytes(width) * cells * self.streams
        cache = stored((width, cells, self.streams), size, self._cache_place(), weight=False)
        flat = view(x, (width, self.tokens))
        sources = (flat, cache) if self.options.early else (flat, rows, cache)
        written = Tensor(cache.shape, sources, size=size)
        written.root = cache
        self.graph.expand(written)
        return view(cache, (x.shape[0], x.shape[1], cells, self.streams), contiguous=False)

    def _mixed(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        window: bool,
        decompression: str | None,
    ) -> Tensor:
        """The values of the context, mixed for every head and token."""
        heads, tokens, streams = queries.shape[1], self.tokens, self.streams
        per = tokens // streams
        q = view(view(queries, (queries.shape[0], heads, per, streams), False),
                 (queries.shape[0], per, heads, streams), False)
        k = view(keys, (keys.shape[0], keys.shape[2], keys.shape[1], streams), contiguous=False)
        v = view(values, (values.shape[0], values.shape[2], values.shape[1], streams), False)
        width = values.shape[0]
        if self.options.flash:
            result = self._flash(q, k, v, window, width, heads, per)
            if decompression:
                turned = view(result, (width, per, heads, streams), contiguous=False)
                weight = self._weight(decompression)
                wide = self._op((weight.shape[1], per, heads, streams), weight, turned, batch=per)
                width = weight.shape[1]
                result = self._op((width, heads, per, streams), view(wide, (width, heads, per, streams), False))
            result = view(result, (width * heads, tokens))
        else:
            result = self._scores(q, k, v, window, width, heads, per, decompression)
        return self.graph.expand(result)

    def _flash(
        self, q: Tensor, k: Tensor, v: Tensor, window: bool, width: int, heads: int, per: int
    ) -> Tensor:
        sources = [q, k, v, self.masks[window]]
        if self._has("attn_sinks.weight"):
            sources.append(self._weight("attn_sinks.weight"))
        result = self._op((width, heads, per, self.streams), *sources)
        result.free_choice = True
        if self.options.converts:
            c = self.options.cache
            kinds = ((k, c.key_type),) if self.sizes.latent else ((k, c.key_type), (v, c.value_type))
            for tensor, name in kinds:
                if cache_type(name).quantized:
                    count = 1
                    for n in tensor.shape:
                        count *= n
                    result.size += F16 * count
        return result

    def _scores(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        window: bool,
        width: int,
        heads: int,
        per: int,
        decompression: str | None,
    ) -> Tensor:
        """Attention with the scores of all heads in memory."""
        cells, streams = k.shape[1], self.streams
        scores = self._op((cells, per, heads, streams), k, q)
        scores = self._in_place(scores, self.masks[window])
        if decompression:
            v = self._op((cells, width, v.shape[2], streams), view(v, v.shape, False), element=F16)
        result = self._op((width, per, heads, streams), v, scores)
        if decompression:
            weight = self._weight(decompression)
            width = weight.shape[1]
            result = self._op((width, per, heads, streams), weight, result, batch=per)
        result = self._op((width * heads, self.tokens), view(result, result.shape, contiguous=False))
        if self.options.cache_on_host and self.options.enforced:
            result.device = self.options.host
        return result

    def _latent_attention(self, x: Tensor) -> Tensor:
        """Latent attention: over the compressed cache, or over decompressed keys and values."""
        mla = self.sizes.latent
        assert mla is not None
        heads, tokens = max(self.sizes.heads), self.tokens
        if self._has("attn_q_a.weight"):
            q = self._product("attn_q_b", self._norm(self._product("attn_q_a", x), "attn_q_a_norm"))
        else:
            q = self._product("attn_q", x)
        q = view(q, (mla.key, heads, tokens))
        joint = self._product("attn_kv_a_mqa", x)
        compressed = part(joint, (mla.cache_rank, tokens))
        turned = self._rope(part(joint, (mla.rope, 1, tokens)))
        compressed = self._norm(compressed, "attn_kv_a_norm")
        if self._has("attn_kv_b.weight"):
            return self._decompressed_attention(q, compressed, turned)
        plain = part(q, (mla.key - mla.rope, heads, tokens))
        rotary = self._rope(part(q, (mla.rope, heads, tokens)))
        plain = view(plain, (mla.key - mla.rope, tokens, heads), contiguous=False)
        weight = self._weight("attn_k_b.weight")
        absorbed = self._op((mla.cache_rank, tokens, heads), weight, plain, batch=tokens)
        absorbed = view(absorbed, (mla.cache_rank, heads, tokens), contiguous=False)
        width = mla.cache_rank + mla.rope
        queries = self._op((width, heads, tokens), absorbed, rotary)
        compressed = view(compressed, (mla.cache_rank, 1, tokens))
        keys = self._op((width, 1, tokens), compressed, turned)
        for tensor in (queries, compressed, keys):
            self.graph.expand(tensor)
        cache = self._store(keys, self.options.cache.key_type, self.key_rows[False], False)
        values = view(cache, (mla.cache_rank, 1, *cache.shape[2:]), contiguous=False)
        result = self._mixed(queries, cache, values, False, "attn_v_b.weight")
        return self._product("attn_output", result)

    def _decompressed_attention(self, q: Tensor, compressed: Tensor, turned: Tensor) -> Tensor:
        mla = self.sizes.latent
        assert mla is not None
        heads, tokens, plain = max(self.sizes.heads), self.tokens, mla.key - mla.rope
        joint = self._product("attn_kv_b", compressed)
        values = self._op(
            (mla.value, heads, tokens), part(joint, (mla.value, heads, tokens))
        )
        if self.options.early:
            rotary = self._rope(part(q, (mla.rope, heads, tokens)))
            queries = self._op(q.shape, part(q, (plain, heads, tokens)), rotary)
        else:
            queries = self._rope(q)
        repeated = self._op((mla.rope, heads, tokens), turned)
        keys = self._op(
            (mla.key, heads, tokens), part(joint, (plain, heads, tokens)), repeated
        )
        for tensor in (queries, values, keys):
            self.graph.expand(tensor)
        c = self.options.cache
        key_cache = self._store(keys, c.key_type, self.key_rows[False], False)
        value_cache = self._store(values, c.value_type, self.value_rows[False], False)
        result = self._mixed(queries, key_cache, value_cache, False, None)
        return self._product("attn_output", result)

    # Networks.
    def _network(self, x: Tensor) -> Tensor:
        if not self._has("ffn_down_exps.weight"):
            return self._feed_forward(x, "")
        routed = self._mixture(x)
        if not self._has("ffn_down_shexp.weight"):
            return routed
        gate = None
        if self._has("ffn_gate_inp_shexp.weight"):
            scores = self._op((1, x.shape[1]), self._weight("ffn_gate_inp_shexp.weight"), x)
            gate = self._in_place(self._op(scores.shape, scores), scores)
        shared = self._feed_forward(x, "_shexp")
        if gate is not None:
            shared = self._in_place(shared, gate)
        return self._in_place(routed, shared)

    def _feed_forward(self, x: Tensor, suffix: str) -> Tensor:
        up = self._product(f"ffn_up{suffix}", x)
        if self._has(f"ffn_gate{suffix}.weight"):
            hidden = self._gated(self._product(f"ffn_gate{suffix}", x), up)
        elif self._weights[f"ffn_down{suffix}.weight"].shape[0] < up.shape[0]:
            shape = (up.shape[0] // 2, *up.shape[1:])
            if self.options.early:
                halves = [self._op(shape, part(up, shape)) for _ in range(2)]
                hidden = self._gated(*halves)
            else:
                hidden = self._op(shape, up)
        else:
            hidden = self._in_place(up)
        return self._product(f"ffn_down{suffix}", hidden)

    def _gated(self, gate: Tensor, up: Tensor) -> Tensor:
        """Hidden activations after their gate; one op since 2025."""
        if self.options.early:
            return self._in_place(self._in_place(gate), up)
        return self._op(up.shape, gate, up)

    def _mixture(self, x: Tensor) -> Tensor:
        e = self.sizes.experts
        assert e is not None
        tokens, width = x.shape[1], x.shape[0]
        logits = self._product("ffn_gate_inp", x)
        probabilities = logits if self._has("ffn_gate_inp.bias") else self._in_place(logits)
        selection = probabilities
        if self._has("exp_probs_b.bias"):
            selection = self._in_place(probabilities, self._weight("exp_probs_b.bias"))
        order = self._op(selection.shape, selection, element=I32)
        chosen = part(order, (e.used, tokens))
        weights = self._op((1, e.used, tokens), view(probabilities, (1, e.count, tokens)), chosen)
        weights = self._in_place(view(weights, (e.used, tokens)))
        self.graph.expand(weights)
        weights = view(weights, (1, e.used, tokens))
        cell = view(x, (width, 1, tokens))
        up = self._expert_product("ffn_up_exps", cell, chosen)
        if self._has("ffn_gate_exps.weight"):
            gate = self._expert_product("ffn_gate_exps", cell, chosen)
            hidden = self._gated(gate, up)
        else:
            hidden = self._in_place(up)
        experts = self._expert_product("ffn_down_exps", hidden, chosen)
        experts = self.graph.expand(self._in_place(experts, weights))
        members = [
            self.graph.expand(part(experts, (width, tokens)))
            for _ in range(e.used)
        ]
        total = members[0]
        for member in members[1:]:
            total = self.graph.expand(self._in_place(total, member))
        return total if e.used > 1 else self._op(total.shape, total)

    def _expert_product(self, name: str, x: Tensor, chosen: Tensor) -> Tensor:
        weight = self._weight(f"{name}.weight")
        used, tokens = chosen.shape
        result = self._op((weight.shape[1], used, tokens), weight, x, chosen, batch=tokens)
        bias = f"{name}.bias"
        if self._has(bias):
            result = self._in_place(result, self._weight(bias), chosen)
        return result

    def _mask(self, window: bool) -> Tensor:
        cells, streams = self._cells(window), self.streams
        shape = (cells, self.tokens // streams, 1, streams)
        if self.options.early and self.options.flash:
            return self._op(shape, entry(shape), element=F16)
        return entry(shape, F16 if self.options.flash else F32)

    def _value_rows(self) -> Tensor:
        """Where values go in their cache; without flash attention they lie by rows."""
        h = self.sizes
        width = 1 if self.options.flash else max(h.kv_heads) * h.value_size
        return entry((self.tokens * width,), I64)
