"""Letters of attention: the batch, the heads, and the queries where no mask depends on their
place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from situate.torch_capture.cuts.letters import Axis, Letter, Output, arguments, operands, shape

if TYPE_CHECKING:
    from torch import fx

Shape = tuple[int, ...]


class _Common(NamedTuple):
    """A letter of queries (b, h, t, e), and of keys and values (b, k, s, e) or not."""

    size: int
    query: Axis
    key: Axis | None
    kind: str

    def mask(self, mask: Shape, q: Shape) -> Axis | None:
        """The axis of a mask, which is broadcast to (b, h, t, s)."""
        d = self.query.dim
        # A mask of fewer dimensions lacks the first ones.
        at = d - (4 - len(mask))
        return Axis(at, inner=self.query.inner) if at >= 0 and mask[at] == q[d] > 1 else None


def _forward(node: fx.Node) -> list[Letter]:
    """Operands: queries, keys, values, and a mask or not. Outputs: the result, and logarithms of
    sums (b, h, t)."""
    q, k, _, *masks = map(shape, operands(node))
    return [
        Letter(
            letter.size,
            (letter.query, letter.key, letter.key, *(letter.mask(mask, q) for mask in masks)),
            (letter.query, letter.query),
            kind=letter.kind,
        )
        for letter in _common(node, q, k)
    ]


def _backward(node: fx.Node) -> list[Letter]:
    """Operands: the gradient, queries, keys, values, the result, the logarithms, and a mask or
    not. Where queries are cut, the gradients of keys and values are sums."""
    _, q, k, _, _, _, *masks = map(shape, operands(node))
    result = []
    for letter in _common(node, q, k):
        query, key = letter.query, letter.key
        inputs = (query, query, key, key, query, query, *(letter.mask(mask, q) for mask in masks))
        gradient: Output = key or "sum"
        outputs = (query, gradient, gradient)
        result.append(Letter(letter.size, inputs, outputs, kind=letter.kind))
    return result


def _common(node: fx.Node, q: Shape, k: Shape) -> Iterator[_Common]:
    options = arguments(node)
    # A dropout inside would draw other numbers in each part.
    if options.get("dropout_p", 0.0):
        return
    letters = [_Common(q[0], Axis(0), Axis(0), "batch")]
    if q[1] % k[1] == 0:
        letters.append(_Common(k[1], Axis(1, inner=q[1] // k[1]), Axis(1), "heads"))
    # A causal mask depends on the place of a query among all.
    if not options.get("is_causal", False):
        letters.append(_Common(q[2], Axis(2), None, "sequence"))
    yield from (letter for letter in letters if letter.size > 1)


RULES: dict[str, Callable[[Any], list[Letter]]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _forward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _backward,
}
