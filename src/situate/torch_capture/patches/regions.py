"""Regions of a step in another mode (autocast, no gradients, inference) as plain parts of its
graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.autocast import CastCache
from situate.torch_capture.patches.patched import replaced

if TYPE_CHECKING:
    import torch
    from torch import fx


@contextlib.contextmanager
def regions_in_line() -> Iterator[None]:
    """Export the ops of a region in their place, between the calls that enter and leave its mode.

    By default `torch.export` makes a submodule of each region. AOTAutograd traces the ops of a
    submodule without the modules of the model that they come from. Ops of a region without
    gradients inside one of autocast would come out with gradients.
    """
    from torch._export.passes import replace_autocast_with_hop_pass as autocast
    from torch._export.passes import replace_set_grad_with_hop_pass as gradients

    def unchanged(module: Any, signature: Any) -> Any:
        return module, signature

    with (
        replaced(autocast, "replace_autocast_with_hop_pass", unchanged),
        replaced(gradients, "replace_set_grad_with_hop_pass", unchanged),
    ):
        yield


class Regions:
    """The regions of an exported step while AOTAutograd traces it.

    Args:
        module: the exported step, changed in place.
        training: the step has a backward pass.
    """

    def __init__(self, module: fx.GraphModule, training: bool) -> None:
        from torch.amp import autocast_mode

        self._open: list[torch.autocast] = []
        self._casts = CastCache()
        graph = module.graph
        # Export writes the begin and end of an autocast region as calls of these functions.
        entries = graph.find_nodes(op="call_function", target=autocast_mode._enter_autocast)
        for node in entries:
            node.target = self._enter
        for node in graph.find_nodes(op="call_function", target=autocast_mode._exit_autocast):
            node.target = self._leave
        if entries:
            self._keep_casts(module)
        if not training:
            _erase_grad_modes(graph)
        module.recompile()

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        """A block in which autocast caches its casts as in eager PyTorch. Open regions end with the
        block, even after an error."""
        try:
            with self._casts.used():
                yield
        finally:
            while self._open:
                self._leave(self._open[-1])

    def _keep_casts(self, module: fx.GraphModule) -> None:
        """Begin each trace with the parameters whose casts autocast caches."""
        # AOTAutograd passes new tensors for the parameters on each trace, so their ids are
        # collected inside it.
        if parameters := _merged_parameters(module):
            with module.graph.inserting_after(parameters[-1]):
                module.graph.call_function(self._casts.begin, (parameters,))

    def _enter(self, *mode: Any) -> torch.autocast:
        import torch

        region = torch.autocast(*mode)
        region.__enter__()  # type: ignore[no-untyped-call]
        self._open.append(region)
        return region

    def _leave(self, region: torch.autocast) -> None:
        self._open.remove(region)
        region.__exit__(None, None, None)
        if not self._open:
            self._casts.clear()


def _merged_parameters(module: fx.GraphModule) -> list[fx.Node]:
    """One node per parameter that takes a gradient. Nodes of tied weights become one, as one cast
    serves all of them in eager PyTorch."""
    reads: dict[int, fx.Node] = {}
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for node in module.graph.find_nodes(op="get_attr"):
        parameter = parameters.get(str(node.target))
        if parameter is not None and parameter.requires_grad:
            first = reads.setdefault(id(parameter), node)
            if node is not first:
                node.replace_all_uses_with(first)
                module.graph.erase_node(node)
    return [*reads.values()]


def _erase_grad_modes(graph: fx.Graph) -> None:
    """Erase calls that turn gradients on or off, since inference has none."""
    import torch

    for node in graph.find_nodes(op="call_function", target=torch._C._set_grad_enabled):
        graph.erase_node(node)


@contextlib.contextmanager
def inference_without_gradients() -> Iterator[None]:
    """Trace `torch.inference_mode` as `torch.no_grad`. No gradient passes through either, and
    export writes down only the latter."""
    import torch

    mode = torch.inference_mode

    def enter(self: Any) -> None:
        # `__exit__` leaves whatever context stands in this attribute.
        self._inference_mode_context = torch.set_grad_enabled(not self.mode)

    with replaced(mode, "__enter__", enter):
        yield
