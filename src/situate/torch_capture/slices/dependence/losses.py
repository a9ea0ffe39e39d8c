"""Losses that PyTorch computes in one operator, with a reduction of their own."""

from __future__ import annotations

from collections.abc import Sequence

from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    Reason,
    Relation,
    Unrelated,
    by_sample,
    common,
    reduced,
)

POINTWISE = frozenset(
    {"mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss"}
    | {"l1_loss", "binary_cross_entropy_with_logits"}
)
"""Losses of pairs of numbers."""

OF_ROWS = frozenset(
    {"multi_margin_loss", "multilabel_margin_loss_forward", "multilabel_margin_loss"}
)
"""Losses of the rows of a matrix, one per sample."""

OF_CLASSES = frozenset({"nll_loss_forward", "nll_loss2d_forward"})

CTC = frozenset({"_ctc_loss", "_ctc_loss_backward"})

MEAN = 1
"""PyTorch's number for a mean."""


def is_loss(name: str) -> bool:
    """True for a loss with a reduction, or the gradient of one."""
    return _forward(name) in POINTWISE | OF_ROWS | OF_CLASSES


def _forward(name: str) -> str:
    """The name of the loss whose gradient an operator computes."""
    stem = name.removesuffix("_backward")
    return f"{stem}_forward" if stem in ("nll_loss", "nll_loss2d") and stem != name else stem


def loss(call: Call) -> Relations:
    """The relation of a loss, or of its gradient."""
    is_gradient = call.name.endswith("_backward")
    tensors = [call.relation(call.arguments[name]) for name in ("self", "target")]
    batch = _batch(call, tensors)
    reduction = call.arguments["reduction"]
    if batch is None:
        return tuple(_of_shared(call, k) for k in range(len(call.shapes)))
    if _is_weighed(call) and reduction == MEAN:
        raise Unrelated(Reason.CLASSES)
    if is_gradient:
        return (_gradient(call, batch, reduction),)
    return tuple(_result(call, k, batch, reduction) for k in range(len(call.shapes)))


def ctc(call: Call) -> Relations:
    """The relation of a CTC loss per sample, or of its gradient. Scores are (steps, samples,
    classes), and lengths are numbers."""
    is_gradient = call.name.endswith("_backward")
    scores, targets = (call.relation(call.arguments[name]) for name in ("log_probs", "targets"))
    is_batched = (scores.kind, scores.axis) == (targets.kind, 1) == ("by_sample", 1)
    if not is_batched or scores.power or targets.axis or not call.same("blank", "zero_infinity"):
        raise Unrelated(Reason.PAIRS)
    if not 1 == scores.blocks == targets.blocks:
        raise Unrelated(Reason.PLACE)
    for name in ("input_lengths", "target_lengths"):
        if not _is_part(call.arguments[name], call.whole_arguments[name]):
            raise Unrelated(Reason.PLACE)
    power = call.relation(call.first).power if is_gradient else 0
    result = call.check_grows(by_sample(int(is_gradient), power))
    # The second one, which the gradient reads, is as long as the longest target of a slice.
    return (result,) * len(call.shapes)


def _is_part(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """True if some numbers occur consecutively among others."""
    starts = range(len(theirs) - len(ours) + 1)
    return any(list(theirs[k : k + len(ours)]) == list(ours) for k in starts)


def _of_shared(call: Call, k: int) -> Relation:
    if call.growing[k]:
        raise Unrelated(Reason.UNPROVED)
    return SHARED


def _batch(call: Call, tensors: list[Relation]) -> Relation | None:
    """The common relation by sample of the tensors that a loss compares; None if it reads no
    samples."""
    weight = call.operand("weight")
    if weight is not None:
        tensors = [*tensors, weight]
    if any(relation.kind == "reduced" for relation in tensors):
        raise Unrelated(Reason.LOSS)
    if any(relation.power for relation in tensors):
        raise Unrelated(Reason.NUMBER)
    of_classes = _forward(call.name) in OF_ROWS | OF_CLASSES
    if of_classes and weight is not None and weight.kind != "shared":
        raise Unrelated(Reason.PAIRS)
    batch = common(tensors, otherwise=SHARED)
    # An unbatched loss, or samples along the classes.
    if of_classes and batch.axis != 0:
        raise Unrelated(Reason.PAIRS)
    return None if batch is SHARED else batch


def _is_weighed(call: Call) -> bool:
    return _forward(call.name) in OF_CLASSES and call.arguments.get("weight") is not None


def _result(call: Call, k: int, batch: Relation, reduction: int) -> Relation:
    if call.growing[k] != ():
        axis = call.growing[k][0]
        return call.check_grows(by_sample(axis, 0, batch.blocks), k)
    if k and call.name in OF_CLASSES:
        return reduced(0)  # the weights of all labels, in sum
    # A mean over n samples is sum_s r_s mean_s; a sum has no factor r_s.
    return reduced(int(reduction == MEAN))


def _gradient(call: Call, batch: Relation, reduction: int) -> Relation:
    """The relation of a loss's gradient, which a mean divides by the count of all numbers."""
    gradient = call.relation(call.arguments["grad_output"])
    # The gradient of each loss, which no reduction has taken together, may lack the classes.
    common([gradient, batch])
    power = gradient.power
    # A mean divides by the slice's own count, n_s = r_s n, so W = r_s v_s.
    if power is not None and reduction == MEAN:
        power += 1
    return call.check_grows(by_sample(batch.axis, power, batch.blocks))
