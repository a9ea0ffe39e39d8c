"""Batch norms that take their statistics over all slices.

Each slice computes its own statistics, one op combines them, and each slice normalises with the
result; the backward pass works alike.

PyTorch's inference kernel normalises with given statistics, so it is a slice's part of the forward
pass. Its gradient lacks the part that flows through the statistics. That part is linear in the
normalised input, so the same kernel computes it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture import names
from situate.torch_capture.nodes import add_operator, bound_arguments
from situate.torch_capture.patches.kernel_results import layouts_as_computed

if TYPE_CHECKING:
    from torch import fx

Nodes = dict["fx.Node", "fx.Node"]
"""By node of a slice's trace, the node that stands for it in the step."""


def meet(passes: Sequence[Forward | Backward]) -> None:
    """Combine the statistics of all slices, and let each slice continue with the result.

    Args:
        passes: of one norm, in the order of the slices.
    """
    first = passes[0]
    combined = first.together(
        [direction.local_values for direction in passes],
        sum(direction.count for direction in passes),
    )
    values = [first.item(combined, i) for i in range(len(combined.meta["val"]))]
    for direction in passes:
        direction.finish(values)


class _Pass:
    """One direction of a norm in one slice.

    Attributes:
        count: numbers of a channel in the slice.
        local_values: the slice's own statistics or gradients.
        meets: the slice needs the values of the others.
    """

    count: int
    local_values: tuple[Any, ...]
    meets = True

    def __init__(self, graph: fx.Graph, node: fx.Node, nodes: Nodes, number: int) -> None:
        from torch import fx

        self._graph, self._node, self._nodes, self._number = graph, node, nodes, number
        self.arguments = fx.map_arg(bound_arguments(node), nodes.__getitem__)
        shape = self.arguments["input"].meta["val"].shape
        # Dimension 1 has the channels, and a channel's statistics are over all others.
        self.count = shape.numel() // shape[1]

    def call(self, op: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """A call of an operator in the slice."""
        return self._of_slice(self.once(op, *args, **kwargs))

    def once(self, op: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """A call of an operator that runs once per step."""
        with layouts_as_computed():
            node = add_operator(self._graph, "", op, *args, **kwargs)
        return self._in_place(node)

    def item(self, node: fx.Node, k: int) -> fx.Node:
        """An output of a node."""
        output = self._graph.call_function(operator.getitem, (node, k))
        output.meta["val"] = node.meta["val"][k]
        if names.SLICE in node.meta:
            self._of_slice(output)
        return self._in_place(output)

    def normalised(self, weight: Any, bias: Any, mean: fx.Node, variance: fx.Node) -> fx.Node:
        """The slice's normalised input, times a weight and plus a bias."""
        import torch

        norm = torch.ops.aten._native_batch_norm_legit_no_training.default
        x, eps = self.arguments["input"], self.arguments["eps"]
        # With fixed statistics the momentum, 0.0, counts for nothing.
        return self.item(self.call(norm, x, weight, bias, mean, variance, 0.0, eps), 0)

    def stand_for(self, values: Sequence[fx.Node]) -> None:
        """Let values stand for the outputs of the norm in the slice's trace."""
        for user in self._node.users:
            self._nodes[user] = values[user.args[1]]  # type: ignore[index]

    def _of_slice(self, node: fx.Node) -> fx.Node:
        node.meta[names.SLICE] = self._number
        return node

    def _in_place(self, node: fx.Node) -> fx.Node:
        """The node, attributed to the module and the pass of the norm."""
        own = self._node.meta
        # A node of the backward pass names the module of its forward node by the second key.
        node.meta["nn_module_stack"] = own.get("nn_module_stack") or own.get("fwd_nn_module_stack")
        node.meta["partitioner_tag"] = own.get("partitioner_tag")
        return node


class Forward(_Pass):
    """The forward pass of a norm; its local values are the mean, the variance and the count."""

    def __init__(self, graph: fx.Graph, node: fx.Node, nodes: Nodes, number: int) -> None:
        import torch

        super().__init__(graph, node, nodes, number)
        aten = torch.ops.aten
        x, dtype = self.arguments["input"], node.meta["val"][1].dtype
        others = [i for i in range(x.meta["val"].dim()) if i != 1]
        # The kernel accumulates statistics in the dtype of its saved mean, not of the input.
        if x.meta["val"].dtype != dtype:
            x = self.call(aten._to_copy.default, x, dtype=dtype)
        both = self.call(aten.var_mean.correction, x, others, correction=0)
        self.local_values = self.item(both, 1), self.item(both, 0), self.count

    def together(self, local_values: Sequence[tuple[Any, ...]], _: int) -> fx.Node:
        """The statistics of the batch, and the new running averages if there are any."""
        from situate.torch_capture.slices.norm_operators import batch_norm_statistics

        running = [self.arguments.get(name) for name in ("running_mean", "running_var")]
        means, variances, counts = map(list, zip(*local_values, strict=True))
        return self.once(
            batch_norm_statistics._opoverload,
            means,
            variances,
            counts,
            [average for average in running if average is not None],
            self.arguments["momentum"],
        )

    def finish(self, values: Sequence[fx.Node]) -> None:
        """Normalise with the statistics of the batch."""
        y = self.normalised(self.arguments["weight"], self.arguments["bias"], *values[:2])
        # A gradient is made of the variance itself, where the trace has its inverse root.
        self.stand_for([y, *values])


class Backward(_Pass):
    """The backward pass of a norm; its local values are the gradients of weight and bias."""

    def __init__(self, graph: fx.Graph, node: fx.Node, nodes: Nodes, number: int) -> None:
        import torch

        super().__init__(graph, node, nodes, number)
        own, output_mask = self.arguments, self.arguments["output_mask"]
        self._statistics = own["save_mean"], own["save_invstd"]
        # As in inference: the statistics stand for running averages, at which the gradient stops.
        # All slices need both sums, even if weight and bias are not trained.
        self._parts = self.call(
            torch.ops.aten.native_batch_norm_backward.default,
            *(own[name] for name in ("grad_out", "input", "weight")),
            *(*self._statistics, None, None, False, own["eps"], [output_mask[0], True, True]),
        )
        self.local_values = self.item(self._parts, 1), self.item(self._parts, 2)
        self.meets = bool(output_mask[0])
        if not self.meets:
            self.stand_for([self._parts, *self.local_values])

    def together(self, local_values: Sequence[tuple[Any, ...]], count: int) -> fx.Node:
        """The factor and the addend that make the missing part of the gradient from the normalised
        input."""
        from situate.torch_capture.slices.norm_operators import batch_norm_gradients

        weights, biases = map(list, zip(*local_values, strict=True))
        variance, weight = self._statistics[1], self.arguments["weight"]
        op = batch_norm_gradients._opoverload
        return self.once(op, weights, biases, weight, variance, self.arguments["eps"], count)

    def finish(self, values: Sequence[fx.Node]) -> None:
        """Add the part of the gradient that flows through the statistics."""
        import torch

        factor, addend = values
        missing = self.normalised(factor, addend, *self._statistics)
        whole = self.call(torch.ops.aten.add.Tensor, self.item(self._parts, 0), missing)
        self.stand_for([whole, *self.local_values])
