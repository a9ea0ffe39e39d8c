"""Feed-forward networks and mixtures of experts in a pass."""

from __future__ import annotations

from situate.language.activations.scope import Scope
from situate.language.activations.tensors import I32, Tensor, part, view


def network(scope: Scope, x: Tensor) -> Tensor:
    """The network of a layer: dense, or a mixture with shared experts."""
    if not scope.has("ffn_down_exps.weight"):
        return _feed_forward(scope, x, "")
    routed = _mixture(scope, x)
    if not scope.has("ffn_down_shexp.weight"):
        return routed
    gate = None
    if scope.has("ffn_gate_inp_shexp.weight"):
        scores = scope.op((1, x.shape[1]), scope.weight("ffn_gate_inp_shexp.weight"), x)
        gate = scope.in_place(scope.op(scores.shape, scores), scores)
    shared = _feed_forward(scope, x, "_shexp")
    if gate is not None:
        shared = scope.in_place(shared, gate)
    return scope.in_place(routed, shared)


def _feed_forward(scope: Scope, x: Tensor, suffix: str) -> Tensor:
    up = scope.product(f"ffn_up{suffix}", x)
    if scope.has(f"ffn_gate{suffix}.weight"):
        hidden = _gated(scope, scope.product(f"ffn_gate{suffix}", x), up)
    elif scope.weights[f"ffn_down{suffix}.weight"].shape[0] < up.shape[0]:
        shape = (up.shape[0] // 2, *up.shape[1:])
        if scope.options.early:
            halves = [scope.op(shape, part(up, shape)) for _ in range(2)]
            hidden = _gated(scope, *halves)
        else:
            hidden = scope.op(shape, up)
    else:
        hidden = scope.in_place(up)
    return scope.product(f"ffn_down{suffix}", hidden)


def _gated(scope: Scope, gate: Tensor, up: Tensor) -> Tensor:
    """Hidden activations after their gate; one op since 2025."""
    if scope.options.early:
        return scope.in_place(scope.in_place(gate), up)
    return scope.op(up.shape, gate, up)


def _mixture(scope: Scope, x: Tensor) -> Tensor:
    e = scope.sizes.experts
    assert e is not None
    tokens, width = x.shape[1], x.shape[0]
    logits = scope.product("ffn_gate_inp", x)
    probabilities = logits if scope.has("ffn_gate_inp.bias") else scope.in_place(logits)
    selection = probabilities
    if scope.has("exp_probs_b.bias"):
        selection = scope.in_place(probabilities, scope.weight("exp_probs_b.bias"))
    order = scope.op(selection.shape, selection, element=I32)
    chosen = part(order, (e.used, tokens))
    weights = scope.op((1, e.used, tokens), view(probabilities, (1, e.count, tokens)), chosen)
    weights = scope.in_place(view(weights, (e.used, tokens)))
    scope.graph.expand(weights)
    weights = view(weights, (1, e.used, tokens))
    cell = view(x, (width, 1, tokens))
    up = _expert_product(scope, "ffn_up_exps", cell, chosen)
    if scope.has("ffn_gate_exps.weight"):
        gate = _expert_product(scope, "ffn_gate_exps", cell, chosen)
        hidden = _gated(scope, gate, up)
    else:
        hidden = scope.in_place(up)
    experts = _expert_product(scope, "ffn_down_exps", hidden, chosen)
    experts = scope.graph.expand(scope.in_place(experts, weights))
    members = [scope.graph.expand(part(experts, (width, tokens))) for _ in range(e.used)]
    total = members[0]
    for member in members[1:]:
        total = scope.graph.expand(scope.in_place(total, member))
    return total if e.used > 1 else scope.op(total.shape, total)


def _expert_product(scope: Scope, name: str, x: Tensor, chosen: Tensor) -> Tensor:
    weight = scope.weight(f"{name}.weight")
    used, tokens = chosen.shape
    result = scope.op((weight.shape[1], used, tokens), weight, x, chosen, batch=tokens)
    bias = f"{name}.bias"
    if scope.has(bias):
        result = scope.in_place(result, scope.weight(bias), chosen)
    return result
