"""The relations of all values of a step, op by op, and the ops that have none."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate.torch_capture.flow import described_outputs
from situate.torch_capture.names import state_name
from situate.torch_capture.slices.dependence.alignment import aligned
from situate.torch_capture.slices.dependence.constants import (
    Cutting,
    constant_relation,
    constant_values,
)
from situate.torch_capture.slices.dependence.operator_call import (
    Call,
    Relations,
    growing,
    shapes,
)
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    UNKNOWN,
    Reason,
    Relation,
    Unrelated,
    by_sample,
)
from situate.torch_capture.slices.dependence.rules import assumed, relation_of
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class Finding:
    """An op of a slice whose result has no known relation to those of all slices.

    Attributes:
        node: of the slice's trace.
        reason: why.
        backward: the op belongs to the backward pass.
    """

    node: fx.Node
    reason: Reason
    backward: bool


@dataclass(frozen=True)
class Dependence:
    """The relations between the values of a slice and those of the whole batch.

    Attributes:
        part: the trace of the slice.
        whole: by node of the slice's trace, the corresponding node of the whole batch.
        relations: by node of the slice's trace.
        findings: those that reach a result of the step, in the order of the ops.
        backward: the nodes of the backward pass.
    """

    part: Trace
    whole: Mapping[fx.Node, fx.Node]
    relations: Mapping[fx.Node, Relations]
    findings: tuple[Finding, ...]
    backward: frozenset[fx.Node]

    @property
    def loss(self) -> fx.Node:
        """The node of the loss."""
        outputs = described_outputs(self.part.graph)
        return next(node for node, d in outputs if type(d).__name__ == "PlainAOTOutput")

    def relation(self, node: fx.Node) -> Relation:
        """The relation of a node; of its first result if it has several."""
        related = self.relations[node]
        return related if isinstance(related, Relation) else related[0]

    def is_of_loss(self, finding: Finding) -> bool:
        """True if an op combines samples for the loss alone: no value that is computed per sample
        depends on its result."""
        if finding.backward or finding.reason not in OF_LOSSES or self._grows(finding.node):
            return False
        visited, pending = {finding.node}, [finding.node]
        while pending:
            for user in pending.pop().users:
                if user in self.relations and user not in visited and user not in self.backward:
                    if self._grows(user):
                        return False
                    visited.add(user)
                    pending.append(user)
        return True

    def origin(self, node: fx.Node) -> fx.Node:
        """The op that combines samples before a node, or the node itself."""
        while True:
            sums = [n for n in node.all_input_nodes if self.relation(n).kind == "reduced"]
            if not sums:
                return node
            node = sums[0]

    def is_constant(self, node: fx.Node, buffers: Collection[str]) -> bool:
        """True if a value is the same in every slice, whatever these buffers held before."""
        relation = self.relation(node)
        if relation.kind != "shared" or relation.power or relation.assumed:
            return False
        return all(state_name(source) not in buffers for source in _sources([node]))

    def _grows(self, node: fx.Node) -> bool:
        pairs = zip(shapes(node), shapes(self.whole[node]), strict=False)
        return any(growing(ours, theirs) for ours, theirs in pairs)


OF_LOSSES = frozenset(
    {Reason.TOGETHER, Reason.LOSS, Reason.PRODUCT, Reason.POWERS, Reason.NUMBER, Reason.CLASSES}
    | {Reason.UNPROVED}
)
"""Reasons for which a loss is neither a mean nor a sum."""


def dependence(
    part: Trace,
    whole: Trace,
    axes: tuple[int | None, ...],
    cutting: Cutting,
    over_batch: Collection[fx.Node] = (),
) -> Dependence | None:
    """The relations of a step's values; None if the two sizes run different ops.

    Args:
        part: the trace of a slice.
        whole: the trace of the whole batch.
        axes: by input, the dimension that holds its samples; None if all slices read it whole.
        cutting: the positions of the slices of this size.
        over_batch: batch norms, and their gradients, that take statistics over all slices.
    """
    alignment = aligned(part, whole)
    if alignment is None:
        return None
    part, others = alignment.part, alignment.whole
    joint_norms = {alignment.copies[node] for node in over_batch if node in alignment.copies}
    relations: dict[fx.Node, Relations] = {}
    findings = []
    constants = _constants(part, whole, others, cutting)
    backward = _backward(part)
    for node, other in others.items():
        if node.op == "output":
            break
        if node.op in ("placeholder", "get_attr"):
            relations[node] = constants.get(node) or _source_relation(node, part, whole, axes)
            continue
        call = Call(node, other, cutting.samples, cutting.ratio, relations)
        if node in constants:
            relations[node] = constants[node]
            continue
        try:
            relations[node] = _marked(call, relation_of(call, joint_norms))
        except Unrelated as error:
            finding = Finding(node, error.reason, node in backward)
            if not _is_consequence(call, finding):
                findings.append(finding)
            # Later ops are analysed as if this one had a relation, so that they give findings of
            # their own.
            relations[node] = _marked(call, error.otherwise) or _assumption(assumed(call))
    # An op without a relation is harmless if no result depends on it.
    live = _sources(node for node, _ in described_outputs(part.graph))
    reaching = tuple(_causes([finding for finding in findings if finding.node in live]))
    return Dependence(part, others, relations, reaching, frozenset(backward))


def _causes(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings of the forward pass, and those of the backward pass that do not follow from
    them."""
    # Statistics of a norm explain no finding in the backward pass; any other cause does.
    forward = {finding.reason for finding in findings if not finding.backward}
    for finding in findings:
        if not finding.backward or forward <= {Reason.STATISTICS}:
            yield finding


def _constants(
    part: Trace, whole: Trace, others: Mapping[fx.Node, fx.Node], cutting: Cutting
) -> dict[fx.Node, Relation]:
    """The relations of values that are computed from numbers and constants alone."""
    import torch

    ours = constant_values(list(others), part.constants)
    theirs = constant_values(list(others.values()), whole.constants)
    return {
        node: constant_relation(value, theirs[others[node]], cutting)
        for node, value in ours.items()
        if isinstance(value, torch.Tensor) and isinstance(theirs.get(others[node]), torch.Tensor)
    }


def _source_relation(
    node: fx.Node, part: Trace, whole: Trace, axes: tuple[int | None, ...]
) -> Relation:
    """The relation of a parameter, a buffer, an input or the gradient of the loss."""
    descriptor: Any = node.meta.get("desc")
    if type(descriptor).__name__ == "PlainAOTInput":
        axis = axes[descriptor.idx]
        return SHARED if axis is None else by_sample(axis)
    name = state_name(node)
    same = part.constants.get(name) is whole.constants.get(name)
    return SHARED if same else UNKNOWN


CONSEQUENCES = frozenset(
    {Reason.PLACE, Reason.VIEW, Reason.NUMBER, Reason.LOSS, Reason.PRODUCT, Reason.POWERS}
)
"""Reasons that add nothing after an op that has no relation itself."""


def _is_consequence(call: Call, finding: Finding) -> bool:
    """True if a finding follows from an earlier one."""
    if finding.backward and finding.reason is Reason.STATISTICS:
        return True
    sources = call.node.all_input_nodes
    # After a matrix of all pairs of samples, every finding is a consequence.
    if any(call.relation(n).assumed and len(call.growing_of(n)) > 1 for n in sources):
        return True
    follows = any(relation.assumed for relation in call.inputs)
    return follows and (finding.backward or finding.reason in CONSEQUENCES)


def _marked(call: Call, related: Relations) -> Relations:
    """The relation, marked as an assumption if it follows from one."""
    return _assumption(related) if any(relation.assumed for relation in call.inputs) else related


def _assumption(related: Relations) -> Relations:
    if isinstance(related, Relation):
        return dataclasses.replace(related, assumed=True)
    return tuple(dataclasses.replace(relation, assumed=True) for relation in related)


def _backward(part: Trace) -> set[fx.Node]:
    """The nodes of the backward pass, some of which depend on no gradient of the loss."""
    nodes: set[fx.Node] = set()
    for node in part.graph.nodes:
        is_backward = node.meta.get("partitioner_tag") == "is_backward"
        if is_backward or any(source in nodes for source in node.all_input_nodes):
            nodes.add(node)
    return nodes


def _sources(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    """The nodes, and all nodes that they depend on."""
    sources: set[fx.Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in sources:
            sources.add(node)
            pending.extend(node.all_input_nodes)
    return sources
