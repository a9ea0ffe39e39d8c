"""The reduction of a step's loss over samples, and warnings where slices compute something else
than the whole batch."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from situate.data.slices import Reduction
from situate.errors import SituateError
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.names import path
from situate.torch_capture.nodes import operator_name, place, places
from situate.torch_capture.slices.dependence.analysis import Dependence, Finding
from situate.torch_capture.slices.dependence.norms import BATCH_NORMS
from situate.torch_capture.slices.dependence.relation import Reason

if TYPE_CHECKING:
    from torch import fx

SAY = "say which it is, if one of the two: --slice-loss mean, or sum"

POWERS: dict[int, Reduction] = {1: "mean", 0: "sum"}
"""The reduction, by the power of a slice's share of the batch in the weight of its loss."""

WHY = {
    Reason.TOGETHER: "it takes in all samples",
    Reason.CLASSES: "it weighs samples by their class",
    Reason.PRODUCT: (
        "it multiplies or divides by what depends on the samples (exact: a sum, divided by a count "
        "of the whole batch that is an input)"
    ),
    Reason.NUMBER: "it has a number that changes with the batch's size in another way",
    Reason.UNPROVED: "situate cannot tell how it relates samples",
}
"""The texts of a refusal, shorter than those of a note."""


def reduction(steps: Sequence[Dependence | None]) -> Reduction:
    """The reduction of a loss.

    Args:
        steps: for each slice size, the dependence on the batch.

    Raises:
        SituateError: the loss is neither a mean nor a sum, or there is no proof.
    """
    reductions: dict[Reduction, fx.Node] = {}
    for step in steps:
        if step is None:
            raise SituateError(
                "slices: the step runs other ops at a slice's size than at the batch's, so that "
                f"it cannot be told whether its loss is a mean or a sum over samples: {SAY}"
            )
        for finding in step.findings:
            if step.is_of_loss(finding):
                raise _unknown(finding.node, _why(finding))
        reductions[_reduction(step)] = step.loss
    first, *others = reductions
    if others:
        raise _unknown(reductions[first], "it is another in slices of another size")
    return first


def _proved_reduction(step: Dependence) -> Reduction | None:
    """The reduction of a loss; None without proof."""
    relation = step.relation(step.loss).summed()
    # An assumption is no proof.
    if relation.assumed or relation.kind != "reduced":
        return None
    return POWERS.get(1 if relation.power is None else relation.power)


def _reduction(step: Dependence) -> Reduction:
    loss, relation = step.loss, step.relation(step.loss).summed()
    # Zeros fit any power; a mean is the usual reduction.
    power = 1 if relation.power is None else relation.power
    if relation.kind != "reduced":
        raise _unknown(loss, "it takes in all samples")
    if power not in POWERS:
        # With k equal slices W = k r^p v = k^(1 - p) v.
        raise _unknown(loss, f"it grows with the batch's size to the power of {1 - power}")
    return POWERS[power]


def _why(finding: Finding) -> str:
    return WHY.get(finding.reason) or finding.reason.value.format("it")


def _unknown(node: fx.Node, why: str) -> SituateError:
    return SituateError(
        f"slices: the loss must be a mean or a sum over samples, and aten.{operator_name(node)} "
        f"({place(node)}) stands in the way: {why}: {SAY}"
    )


OTHER_OPS = (
    "slices: the step runs other ops at a slice's size than at the batch's, so it was not looked "
    "for what depends on the whole batch"
)


def notes(
    step: Dependence | None, loss: Reduction, shared_buffers: Collection[str] = ()
) -> Iterator[str]:
    """A warning for each way in which slices compute something else than the whole batch.

    Args:
        step: the dependence of a slice's values on the batch.
        loss: the reduction by which slices are added up.
        shared_buffers: that are written once for all slices.

    Raises:
        SituateError: a view deals out the samples anew.
    """
    if step is None:
        yield OTHER_OPS
        return
    texts: dict[str, list[fx.Node]] = defaultdict(list)
    for finding in step.findings:
        _check_view(step, finding)
        text, node = _note(step, finding)
        texts[text].append(node)
    if changed := [name for name in _changed_buffers(step) if name not in shared_buffers]:
        yield _written(changed)
    for text, nodes in texts.items():
        yield f"slices: {text} ({places(nodes)})"
    yield from _gradients(step, loss)
    yield from _other_loss(step, loss)


def _note(step: Dependence, finding: Finding) -> tuple[str, fx.Node]:
    """The warning about a finding without its place, and the node that it names."""
    node, reason = finding.node, finding.reason
    if step.is_of_loss(finding):
        why = WHY.get(reason) or reason.value.format("it")
        return (
            f"the loss is that of slices, added up, and not that of the batch, for "
            f"aten.{operator_name(node)} stands in the way: {why}"
        ), node
    if reason in (Reason.TOGETHER, Reason.LOSS, Reason.PRODUCT, Reason.POWERS):
        reason, node = Reason.TOGETHER, step.origin(node)
    text = reason.value.format(f"aten.{operator_name(node)}")
    return (f"backward pass: {text}" if finding.backward else text), node


MAX_NAMES = 3
"""Buffers or parameters that a warning names; it counts the others."""


def _listed(names: Sequence[str]) -> str:
    """Names in quotes, such as `'a', 'b', 'c' and 2 others`."""
    others = len(names) - MAX_NAMES
    more = f" and {others} other{'s' * (others > 1)}" if others > 0 else ""
    return ", ".join(map(repr, names[:MAX_NAMES])) + more


def _written(buffers: Sequence[str]) -> str:
    """A warning about buffers that every slice writes."""
    which = "buffer {} is" if len(buffers) == 1 else "buffers {} are"
    return f"slices: {which.format(_listed(buffers))} written by every slice, one after the other"


def _changed_buffers(step: Dependence) -> Iterator[str]:
    """Buffers that slices leave in another state than the whole batch does, except counters and
    batch norms' own statistics."""
    mutated = {
        path(descriptor.mutated_input): node
        for node, descriptor in described_outputs(step.part.graph)
        if type(descriptor).__name__ == "InputMutationAOTOutput" and node.op != "placeholder"
    }
    for name, node in mutated.items():
        is_known = _is_of_norm(node) or _counts(node)
        if name and not (is_known or step.is_constant(node, mutated.keys())):
            yield name


def _is_of_norm(node: fx.Node) -> bool:
    source: Any = node.args[0] if node.args else None
    return node.target is operator.getitem and operator_name(source) in BATCH_NORMS


def _counts(node: fx.Node) -> bool:
    """True for a counter that nothing reads, such as a batch norm's count of batches."""
    value = node.meta.get("val")
    is_integer = value is not None and not value.is_floating_point() and value.numel() == 1
    if not (is_integer and operator_name(node) == "add" and isinstance(node.args[1], int)):
        return False
    is_read = any(user.op != "output" for user in node.users)
    return not is_read and [*node.args[0].users] == [node]  # type: ignore[union-attr]


def _gradients(step: Dependence, loss: Reduction) -> Iterator[str]:
    """A warning about the parameters whose slices' gradients do not add up to the batch's."""
    expected = next(power for power, name in POWERS.items() if name == loss)
    wrong: dict[str, fx.Node] = {}
    for node, descriptor in described_outputs(step.part.graph):
        if type(descriptor).__name__ != "GradAOTOutput":
            continue
        name, relation = path(descriptor.grad_of), step.relation(node).summed()
        fits = relation.kind == "reduced" and relation.power in (expected, None)
        if name in step.part.trainable and not (fits or relation.assumed):
            wrong[name] = node
    if wrong:
        node = next(iter(wrong.values()))
        yield (
            f"slices: the gradients of {_listed([*wrong])} in the slices do not add up to those of "
            f"the batch, by aten.{operator_name(node)} ({place(node)})"
        )


def _other_loss(step: Dependence, loss: Reduction) -> Iterator[str]:
    """A warning if the loss is proved to have another reduction than assumed."""
    proved = _proved_reduction(step)
    if proved is not None and proved != loss:
        yield f"slices: the loss is a {proved} over samples, and is taken for a {loss}"


def _check_view(step: Dependence, finding: Finding) -> None:
    """Refuse a view that deals out the samples of a batch anew, as `x.view(8, -1)` does at another
    size than 8."""
    if finding.reason is not Reason.VIEW or finding.backward:
        return
    after = finding.node
    before = after.all_input_nodes[0]
    whole_before, whole_after = step.whole[before], step.whole[after]
    raise SituateError(
        f"slices: aten.{operator_name(after)} ({place(after)}) deals out the samples of the batch "
        f"anew: of {_shape(whole_before)} it makes {_shape(whole_after)}, and in a slice "
        f"{_shape(after)} of {_shape(before)}: let its sizes follow from the inputs"
    )


def _shape(node: fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)
