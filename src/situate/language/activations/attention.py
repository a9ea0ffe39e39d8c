"""Attention in a pass: over heads, over a sliding window, and over a latent cache."""

from __future__ import annotations

from math import prod

from situate.language.activations.scope import Scope
from situate.language.activations.tensors import F16, Tensor, entry, part, stored, view
from situate.language.cache import cache_type

ROTATION = 64
"""Heads whose size is a multiple of this are rotated before they are quantised."""


def attention(scope: Scope, x: Tensor) -> Tensor:
    """The attention of a layer, up to its output matrix."""
    if scope.sizes.latent is not None:
        return _latent_attention(scope, x)
    window = scope.block.window
    heads = _heads(scope)
    queries, keys, values = _projections(scope, x, heads)
    queries, keys = _turned(scope, queries, "attn_q_norm"), _turned(scope, keys, "attn_k_norm")
    if scope.traits.scaled_queries:
        queries = scope.in_place(queries)
    queries = _rotated(scope, queries, "k", window)
    keys = _rotated(scope, keys, "k", window)
    values = _rotated(scope, values, "v", window)
    # The order in which ops enter the graph is that of their allocation.
    for tensor in (queries, keys, values) if _keys_first(scope) else (queries, values, keys):
        scope.graph.expand(tensor)
    key_cache = _store(scope, keys, scope.options.cache.key_type, scope.key_rows[window], window)
    value_cache = _store(
        scope, values, scope.options.cache.value_type, scope.value_rows[window], window
    )
    result = _mixed(scope, queries, key_cache, value_cache, window, None)
    result = _rotated(scope, result, "v", window)
    return scope.product("attn_output", result)


def _keys_first(scope: Scope) -> bool:
    return scope.options.early or any(scope.sizes.windowed)


def _heads(scope: Scope) -> tuple[int, int]:
    """Heads of queries, and of keys and values."""
    h, weights = scope.sizes, scope.weights
    if "attn_q.weight" in weights:
        queries = weights["attn_q.weight"].shape[1] // h.key_size
        return queries, weights["attn_k.weight"].shape[1] // h.key_size
    return max(h.heads), max(h.kv_heads)


def _projections(scope: Scope, x: Tensor, heads: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    h = scope.sizes
    shapes = [
        (h.key_size, heads[0], scope.tokens),
        (h.key_size, heads[1], scope.tokens),
        (h.value_size, heads[1], scope.tokens),
    ]
    if scope.has("attn_qkv.weight"):
        joint = scope.product("attn_qkv", x)
        parts = [part(joint, shape) for shape in shapes]
    else:
        parts = [
            view(scope.product(f"attn_{letter}", x), shape)
            for letter, shape in zip("qkv", shapes, strict=True)
        ]
    return parts[0], parts[1], parts[2]


def _turned(scope: Scope, x: Tensor, norm: str) -> Tensor:
    """Heads with their normalisation and rotary positions."""
    if scope.has(f"{norm}.weight"):
        x = scope.norm(x, norm)
    without = scope.traits.window_positions and not scope.block.window
    return x if without else _rope(scope, x)


def _rope(scope: Scope, x: Tensor) -> Tensor:
    turned = scope.in_place(x, scope.positions)
    turned.free_choice = True
    return turned


def _rotated(scope: Scope, x: Tensor, kind: str, window: bool) -> Tensor:
    """Heads after the rotation that comes before quantising, and after it back."""
    c, h = scope.options.cache, scope.sizes
    size, name = (h.key_size, c.key_type) if kind == "k" else (h.value_size, c.value_type)
    if scope.options.early or not cache_type(name).quantized or size % ROTATION:
        return x
    side = ROTATION
    # Keys have the largest power of two that divides a head, values the smallest rotation.
    while kind == "k" and size % (2 * side) == 0:
        side *= 2
    key = kind, window
    if key not in scope.rotations:
        scope.rotations[key] = entry((side, side))
    flat = (side, prod(x.shape) // side)
    # Memory of a strided view is copied before it is seen as rows of the rotation.
    rows = scope.op(flat, x) if x.strided else view(x, flat)
    product = scope.op(flat, scope.rotations[key], rows)
    return view(product, x.shape)


def _store(scope: Scope, x: Tensor, kind: str, rows: Tensor, window: bool) -> Tensor:
    """Write keys or values into their cache; returns a view of all that it holds."""
    width = x.shape[0] * x.shape[1]
    cells = scope.cells(window)
    size = cache_type(kind).row_bytes(width) * cells * scope.streams
    place = scope.options.host if scope.options.cache_on_host else scope.block.place
    cache = stored((width, cells, scope.streams), size, place, weight=False)
    flat = view(x, (width, scope.tokens))
    sources = (flat, cache) if scope.options.early else (flat, rows, cache)
    update = Tensor(cache.shape, sources, size=size)
    # The op writes rows of the cache, and has no memory of its own.
    update.root = cache
    scope.graph.expand(update)
    return view(cache, (x.shape[0], x.shape[1], cells, scope.streams), contiguous=False)


def _mixed(
    scope: Scope,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    window: bool,
    decompression: str | None,
) -> Tensor:
    """The values of the context, mixed for every head and token."""
    heads, tokens, streams = queries.shape[1], scope.tokens, scope.streams
    per = tokens // streams
    # As ggml permutes them: tokens before heads, for each stream.
    q = view(
        view(queries, (queries.shape[0], heads, per, streams), False),
        (queries.shape[0], per, heads, streams),
        False,
    )
    k = view(keys, (keys.shape[0], keys.shape[2], keys.shape[1], streams), contiguous=False)
    v = view(values, (values.shape[0], values.shape[2], values.shape[1], streams), False)
    if not scope.options.flash:
        return scope.graph.expand(_scores(scope, q, k, v, window, decompression))
    result = _flash(scope, q, k, v, window)
    if decompression:
        width = values.shape[0]
        by_head = view(result, (width, per, heads, streams), contiguous=False)
        wide = _decompressed(scope, by_head, decompression)
        turned = (wide.shape[0], heads, per, streams)
        result = scope.op(turned, view(wide, turned, contiguous=False))
    return scope.graph.expand(view(result, (result.shape[0] * heads, tokens)))


def _decompressed(scope: Scope, x: Tensor, name: str) -> Tensor:
    """The values of every head, from compressed ones."""
    weight = scope.weight(name)
    return scope.op((weight.shape[1], *x.shape[1:]), weight, x, batch=x.shape[1])


def _flash(scope: Scope, q: Tensor, k: Tensor, v: Tensor, window: bool) -> Tensor:
    """Flash attention, in one op."""
    sources = [q, k, v, scope.masks[window]]
    if scope.has("attn_sinks.weight"):
        sources.append(scope.weight("attn_sinks.weight"))
    _, per, heads, streams = q.shape
    result = scope.op((v.shape[0], heads, per, streams), *sources)
    result.free_choice = True
    if scope.options.converts:
        c = scope.options.cache
        kinds = ((k, c.key_type),) if scope.sizes.latent else ((k, c.key_type), (v, c.value_type))
        for tensor, name in kinds:
            if cache_type(name).quantized:
                # The copies in 16 bits lie behind the result.
                result.size += F16 * prod(tensor.shape)
    return result


def _scores(
    scope: Scope, q: Tensor, k: Tensor, v: Tensor, window: bool, decompression: str | None
) -> Tensor:
    """Attention with the scores of all heads in memory."""
    cells, width = k.shape[1], v.shape[0]
    # The softmax writes over the scores.
    scores = scope.in_place(scope.op((cells, *q.shape[1:]), k, q), scope.masks[window])
    if decompression:
        turned = view(v, v.shape, contiguous=False)
        v = scope.op((cells, width, *v.shape[2:]), turned, element=F16)
    result = scope.op((width, *q.shape[1:]), v, scores)
    if decompression:
        result = _decompressed(scope, result, decompression)
    by_token = view(result, result.shape, contiguous=False)
    result = scope.op((result.shape[0] * q.shape[2], scope.tokens), by_token)
    if scope.options.cache_on_host and scope.options.enforced:
        result.device = scope.options.host
    return result


def _latent_attention(scope: Scope, x: Tensor) -> Tensor:
    """Latent attention: over the compressed cache, or over decompressed keys and values."""
    mla = scope.sizes.latent
    assert mla is not None
    heads, tokens = max(scope.sizes.heads), scope.tokens
    if scope.has("attn_q_a.weight"):
        q = scope.product("attn_q_b", scope.norm(scope.product("attn_q_a", x), "attn_q_a_norm"))
    else:
        q = scope.product("attn_q", x)
    q = view(q, (mla.key, heads, tokens))
    joint = scope.product("attn_kv_a_mqa", x)
    compressed = part(joint, (mla.cache_rank, tokens))
    turned = _rope(scope, part(joint, (mla.rope, 1, tokens)))
    compressed = scope.norm(compressed, "attn_kv_a_norm")
    if scope.has("attn_kv_b.weight"):
        return _decompressed_attention(scope, q, compressed, turned)
    plain = part(q, (mla.key - mla.rope, heads, tokens))
    rotary = _rope(scope, part(q, (mla.rope, heads, tokens)))
    plain = view(plain, (mla.key - mla.rope, tokens, heads), contiguous=False)
    weight = scope.weight("attn_k_b.weight")
    # Queries take the decompression of keys along, so that keys stay compressed.
    absorbed = scope.op((mla.cache_rank, tokens, heads), weight, plain, batch=tokens)
    absorbed = view(absorbed, (mla.cache_rank, heads, tokens), contiguous=False)
    width = mla.cache_rank + mla.rope
    queries = scope.op((width, heads, tokens), absorbed, rotary)
    compressed = view(compressed, (mla.cache_rank, 1, tokens))
    keys = scope.op((width, 1, tokens), compressed, turned)
    for tensor in (queries, compressed, keys):
        scope.graph.expand(tensor)
    cache = _store(scope, keys, scope.options.cache.key_type, scope.key_rows[False], False)
    values = view(cache, (mla.cache_rank, 1, *cache.shape[2:]), contiguous=False)
    result = _mixed(scope, queries, cache, values, False, "attn_v_b.weight")
    return scope.product("attn_output", result)


def _decompressed_attention(scope: Scope, q: Tensor, compressed: Tensor, turned: Tensor) -> Tensor:
    """Latent attention of older files, which have one matrix for keys and values."""
    mla = scope.sizes.latent
    assert mla is not None
    heads, tokens, plain = max(scope.sizes.heads), scope.tokens, mla.key - mla.rope
    joint = scope.product("attn_kv_b", compressed)
    values = scope.op((mla.value, heads, tokens), part(joint, (mla.value, heads, tokens)))
    if scope.options.early:
        rotary = _rope(scope, part(q, (mla.rope, heads, tokens)))
        queries = scope.op(q.shape, part(q, (plain, heads, tokens)), rotary)
    else:
        queries = _rope(scope, q)
    # The rotary part of a key is the same for all heads.
    repeated = scope.op((mla.rope, heads, tokens), turned)
    keys = scope.op((mla.key, heads, tokens), part(joint, (plain, heads, tokens)), repeated)
    for tensor in (queries, values, keys):
        scope.graph.expand(tensor)
    c = scope.options.cache
    key_cache = _store(scope, keys, c.key_type, scope.key_rows[False], False)
    value_cache = _store(scope, values, c.value_type, scope.value_rows[False], False)
    result = _mixed(scope, queries, key_cache, value_cache, False, None)
    return scope.product("attn_output", result)
