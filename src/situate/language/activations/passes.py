"""One pass over a ubatch, as llama.cpp's graph of it.

After `src/llama-graph.cpp` and `src/models/`. The weights of a layer say which ops it has: a bias
adds an op, a normalisation another.
"""

from __future__ import annotations

from situate.language.activations.attention import attention
from situate.language.activations.blocks import Block, PassOptions
from situate.language.activations.networks import network
from situate.language.activations.scope import Scope
from situate.language.activations.tensors import I32, Graph, Tensor, entry
from situate.language.hyperparameters import Hyperparameters


class PassBuilder:
    """The graph of one pass, layer by layer."""

    def __init__(self, sizes: Hyperparameters, options: PassOptions) -> None:
        self._scope = Scope(sizes, options)
        self._stream: Tensor

    def begin(self, embedding: Tensor) -> None:
        """The embedding of the tokens, a matrix or a copy of it."""
        scope, width = self._scope, self._scope.sizes.width
        tokens = entry((scope.tokens,), I32)
        self._stream = scope.graph.expand(
            scope.op((width, scope.tokens), embedding, tokens, batch=0)
        )
        if not scope.options.early:
            # Vectors could come in place of tokens.
            scope.graph.expand(entry((width, scope.tokens)))
        if scope.traits.scaled_embedding:
            self._stream = scope.in_place(self._stream)

    def layer(self, block: Block, pinned: bool, last: bool) -> None:
        """Append a layer.

        Args:
            block: its weights and devices.
            pinned: its normalisations run where it lies, which llama.cpp enforces where all layers
                are on GPUs.
            last: tokens without logits are left out.
        """
        scope, residual = self._scope, self._stream
        scope.enter(block, pinned)
        normed = scope.norm(residual, "attn_norm")
        mixed = attention(scope, normed)
        if last and not scope.traits.rows_last:
            mixed, residual = scope.rows(mixed), scope.rows(residual)
            if scope.traits.parallel:
                normed = scope.rows(normed)
        if scope.traits.parallel:
            self._stream = scope.in_place(scope.in_place(network(scope, normed), residual), mixed)
        else:
            self._stream = self._behind_attention(mixed, residual)

    def _behind_attention(self, mixed: Tensor, residual: Tensor) -> Tensor:
        """The rest of a layer: the sum with the residual stream, the network, another sum."""
        scope, name = self._scope, "post_attention_norm"
        if scope.has("ffn_norm.weight"):
            if scope.has("post_attention_norm.weight"):
                mixed = scope.norm(mixed, "post_attention_norm")
            name = "ffn_norm"
        middle = scope.in_place(mixed, residual)
        result = network(scope, scope.norm(middle, name))
        if scope.has("post_ffw_norm.weight"):
            result = scope.norm(result, "post_ffw_norm", free=True)
        terms = (middle, result) if scope.traits.residual_first else (result, middle)
        return scope.in_place(*terms)

    def end(self, norm: Tensor, matrix: Tensor) -> Graph:
        """The last normalisation and the logits; returns the whole graph."""
        scope, stream = self._scope, self._stream
        if scope.traits.rows_last:
            # The last layer's result stays for models that guess further tokens.
            stream.permanent = True
            stream = scope.rows(stream)
        normed = scope.in_place(scope.normalised(stream), norm)
        logits = scope.op((scope.sizes.vocabulary, *normed.shape[1:]), matrix, normed)
        logits.permanent = True
        scope.graph.expand(logits)
        return scope.graph
