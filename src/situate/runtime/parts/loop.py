"""A step in parts without a placement, op by op in the order of its trace: the reference for the
rounding of a placed step in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from situate.runtime.memory import aligned_alike
from situate.runtime.model_state.bindings import model_tensor
from situate.runtime.programs.kernels import kernel, kernel_name
from situate.runtime.programs.program import Program, Roles
from situate.runtime.programs.seeds import kept_generator, seed_of
from situate.torch_capture.flow import live_nodes
from situate.torch_capture.names import state_name

if TYPE_CHECKING:
    import torch
    from torch import fx


class LoopOfParts:
    """Steps of a captured program in one process, with PyTorch's own optimiser.

    Each op runs as the trace has it, so parts, partial results and their sums are those of the
    placed step, and so are random draws. The optimiser updates whole parameters.

    Args:
        program: of the step.
        model: whose parameters the steps read and update.
        inputs: as at the capture.
        optimizer: of the model's parameters; None for inference.
        seed: of the random draws.

    Attributes:
        tensors: copies of the input tensors, which the steps may overwrite.
        separate: returns the tensors in inputs of the same structure.
    """

    def __init__(
        self,
        program: Program,
        model: torch.nn.Module,
        inputs: Any,
        optimizer: torch.optim.Optimizer | None,
        seed: int = 0,
    ) -> None:
        self._program, self._optimizer = program, optimizer
        self._seed, self._step = seed, 0
        self._ranks, self._live = Roles(program).random, live_nodes(program.step.trace)
        self._model = model
        self.separate = program.separate
        self.tensors = [aligned_alike(tensor) for tensor in program.separate(inputs)]

    def __call__(self) -> list[torch.Tensor]:
        """Run the next step: the loss, or the tensors that the model returns."""
        import torch

        self._step += 1
        with kept_generator(), torch.no_grad():
            values = self._values()
            self._overwrite(values)
        if self._optimizer is not None:
            for name, gradient in self._gradients(values):
                self._tensor(name).grad = gradient
            self._optimizer.step()
            self._optimizer.zero_grad()
        count = len(self._program.results) - len(self._program.overwritten)
        return [values[node].clone() for node in self._program.results[:count]]

    def _values(self) -> dict[fx.Node, Any]:
        """By node, its value in this step."""
        import torch
        from torch import fx

        device, values = torch.device("cpu"), dict[fx.Node, Any]()
        for node in self._program.step.number:
            if node not in self._live:
                continue
            if node.op != "call_function":
                values[node] = self._source(node)
                continue
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            if node in self._ranks:
                torch.manual_seed(seed_of(self._seed, self._step, self._ranks[node]))
            is_operator = hasattr(node.target, "_schema")
            call: Any = kernel(kernel_name(node), device) if is_operator else node.target
            values[node] = call(*args, **kwargs)
        return values

    def _source(self, node: fx.Node) -> Any:
        """The value of a placeholder or a constant."""
        import torch

        descriptor: Any = node.meta.get("desc")
        match type(descriptor).__name__:
            case "PlainAOTInput":
                return self.tensors[descriptor.idx]
            case "TangentAOTInput":
                return torch.ones((), dtype=node.meta["val"].dtype)
        trace, name = self._program.step.trace, state_name(node)
        owner = self._tensor(trace.parameter(name)).detach()
        part = trace.parts.get(name)
        return owner if part is None else part.view(owner)

    def _tensor(self, name: str) -> torch.Tensor:
        return model_tensor(self._program, name, self._model)

    def _gradients(self, values: Mapping[fx.Node, Any]) -> Iterator[tuple[str, torch.Tensor]]:
        """By name, the gradient of each parameter, put together from those of its parts."""
        import torch

        trace, wholes = self._program.step.trace, dict[str, torch.Tensor]()
        for name, nodes in self._program.gradients.items():
            # Copies receive the gradients of their originals.
            if name in trace.copies:
                continue
            gradient = reduce(add, (values[node] for node in nodes))
            if (part := trace.parts.get(name)) is None:
                yield name, gradient
            else:
                whole = wholes.setdefault(part.of, torch.zeros_like(self._tensor(part.of)))
                part.view(whole).copy_(gradient)
        yield from wholes.items()

    def _overwrite(self, values: Mapping[fx.Node, Any]) -> None:
        """Write new values of buffers and inputs."""
        for name, node in self._program.mutations.items():
            self._tensor(name).copy_(values[node])
        count = len(self._program.overwritten)
        for number, node in zip(
            self._program.overwritten, self._program.results[-count:], strict=False
        ):
            self.tensors[number].copy_(values[node])
