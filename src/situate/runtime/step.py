"""A step that runs where a plan says, called like the step that it replaces."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from situate import _core
from situate.errors import SituateError
from situate.runtime.bindings import Bindings, described, state_values
from situate.runtime.commit import Commit
from situate.runtime.custom import defining_modules
from situate.runtime.device import Ran, Share
from situate.runtime.hardware import RealDevice, own_cores
from situate.runtime.memory import Layout, anonymous_file, mapped
from situate.runtime.optimizers import Hyperparameters, hyperparameters
from situate.runtime.placed import PlacedProgram
from situate.runtime.settings import settings
from situate.runtime.state import Entry, lay_out
from situate.runtime.team import Here, Processes, Team
from situate.runtime.worker import SPIN, Common, Hello, Run, Store

if TYPE_CHECKING:
    import torch

StartTeam = Callable[[Sequence[str], Sequence[Hello], int, _core.Flags], Team]
"""Starts a process for every device, see `Processes`."""


class PlacedStep:
    """A training step, or a model that infers, on the devices of a plan.

    Called with the model's inputs (and targets), it does what `loss(model, *inputs)`, `backward()`
    and `optimizer.step()` do, and returns the loss; for inference it returns what the model does.
    The model that was given holds the parameters at all times: save and load its state dict.

    A call that fails raises `SituateError` and leaves the model as it was after the last finished
    step; so does Ctrl-C. Use it as a context manager, or close it, to end its processes.

    Args:
        start: starts the devices, each in a process of its own also where there is only one.

    Attributes:
        model: the model that is trained.
        optimizer: what updates it; its hyperparameters can be changed between steps.
        ran: what each device that is used says of the last step.
    """

    def __init__(
        self,
        placed: PlacedProgram,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None,
        devices: Sequence[RealDevice],
        *,
        seed: int = 0,
        keep: bool = True,
        start: StartTeam | None = None,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self._start = start
        self.ran: list[Ran] = []
        self._placed, self._seed = placed, seed
        program = placed.program
        self._used = [(d, devices[d]) for d in placed.used]
        self._tensors = state_values(program, placed.names, model)
        numbers = placed.names.state
        self._updated = {numbers[path]: program.optimizer for path in program.gradients}
        self._keep = keep
        mirrored = any(device.mirrored for _, device in self._used)
        self._ahead = mirrored and not keep
        self._commits = keep and not mirrored and len(self._used) == 1 and start is None
        self._commit = Commit()
        self._lay_out()
        self._bindings = Bindings(
            model, self._tensors, placed.names, optimizer, self._state, self._updated
        )
        self._said: list[Hyperparameters] = []
        self._step = 0
        self._team: Team | None = None
        if self._ahead:
            self._sync_where_read()

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the step.

        Args:
            inputs: as the model and its loss take them.
            named: the inputs, where they were captured by name.

        Raises:
            SituateError: inputs of other shapes than were captured, or a device that failed.
        """
        return self._run(_joined(inputs, named))

    def timed(self, *inputs: Any, **named: Any) -> Any:
        """Run the step, and keep in `ran` when each op began and ended; otherwise as a call."""
        return self._run(_joined(inputs, named), timed=True)

    def _run(self, inputs: tuple[Any, ...], timed: bool = False, memory: bool = False) -> Any:
        given = self._checked(inputs)
        self._bindings.refresh()
        said = hyperparameters(self.optimizer) if self.optimizer else []
        team = self._team = self._team or self._started(said)
        news = None if said == self._said else said
        changed = self._bindings.changed() if self._ahead else ()
        read, made = self._exchanged(given)
        order = Run(self._step + 1, timed, news, memory, changed, self._keep, read, made)
        with self._commit as commit:
            try:
                self.ran = team.run(order)
                commit.wait()
                self._step, self._said = order.step, said
            except BaseException:
                try:
                    commit.wait()
                finally:
                    self._give_up(order.step)
                raise
        results = [result.clone() for result in self._results] if made is None else made
        return self._placed.program.restore(results)

    def _give_up(self, step: int) -> None:
        try:
            self._end()
        finally:
            for entry in self._state:
                entry.undo(step)
            # Its number is given again, so that it draws the same: no flag may have it.
            self._raised.zero_()

    def memory(self, *inputs: Any, **named: Any) -> list[int]:
        """Run the step and measure the largest bytes in use, of each device that is used: its
        parameters, buffers and what the optimiser keeps, its inputs, the room for what it receives,
        and what PyTorch allocated. Copies that a failing step is undone from are not counted.

        Raises:
            SituateError: as a call.
        """
        self._run(_joined(inputs, named), memory=True)
        home = self._placed.home
        found = []
        for (d, _), ran in zip(self._used, self.ran, strict=True):
            state = (self._state[self._placed.names.state[p]] for p in home if home[p] == d)
            held = sum(part.nbytes for entry in state for part in entry.parts)
            given = zip(self._placed.inputs, self._inputs, strict=True)
            at_input = sum(tensor.nbytes for where, tensor in given if where == d)
            found.append(held + self._placed.received(d) + at_input + (ran.peak or 0))
        return found

    def sync(self) -> None:
        """Bring the state of devices that have memory of their own, such as GPUs, back into the
        model; reading its state dict, or the optimizer's, does so too. Signals wait meanwhile.

        Raises:
            SituateError: a device failed; what it alone held is lost, and nothing runs any more.
        """
        if not self._ahead or self._team is None:
            return
        with self._commit as commit:
            commit.wait()
            try:
                self._team.store(Store(self._step, self._bindings.changed()))
            except BaseException:
                self._end()
                raise

    def _sync_where_read(self) -> None:
        this = weakref.ref(self)

        def sync(*_: object) -> None:
            if (step := this()) is not None:
                step.sync()

        hooks = [self.model.register_state_dict_pre_hook(sync)]  # type: ignore[no-untyped-call]
        if self.optimizer is not None:
            hooks.append(self.optimizer.register_state_dict_pre_hook(sync))
        for hook in hooks:
            weakref.finalize(self, hook.remove)

    def close(self) -> None:
        """End the processes; the next call starts new ones.

        Raises:
            SituateError: as `sync`, which is done first.
        """
        try:
            self.sync()
        finally:
            self._end()

    def _end(self) -> None:
        team, self._team = self._team, None
        if team is not None:
            team.close()

    def __enter__(self) -> PlacedStep:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        with contextlib.suppress(SituateError):
            self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _lay_out(self) -> None:
        import torch

        layout, placed = Layout(), self._placed
        program = placed.program
        numbers = placed.names.state
        self._overwritten = {numbers[path] for path in program.mutations if path in numbers}
        updated = () if self._commits else self._updated
        changed = frozenset({*updated, *self._overwritten} if self._keep else ())
        places = lay_out(layout, self._tensors, self._updated, changed)
        slots = layout.block(placed.channels, sum(placed.channel_bytes))
        nodes = program.inputs
        inputs = [layout.like(node.meta["val"]) for node in nodes]
        results = [layout.like(node.meta["val"]) for node in program.results]
        flags = layout.place((len(slots) + 1,), (1,), torch.int32)
        self._common = Common(places, flags, tuple(slots), tuple(inputs), tuple(results))
        apart = len(self._used) > 1 or self._start is not None
        self._block = anonymous_file(layout.nbytes) if apart else None
        if self._block is None:
            self._raw = torch.zeros(layout.nbytes, dtype=torch.uint8, device="cpu")
        else:
            self._raw = mapped(self._block)
            weakref.finalize(self, os.close, self._block)
        self._inputs = [place.view(self._raw) for place in inputs]
        self._results = [place.view(self._raw) for place in results]
        self._raised = flags.view(self._raw)
        self._flags = _core.make_flags(self._raised.numpy().view("uint32"))
        self._state = [Entry.at(place, self._raw) for place in places]

    def _checked(self, given: tuple[Any, ...]) -> list[torch.Tensor]:
        """The tensors of the inputs."""
        tensors = [tensor.detach() for tensor in self._placed.program.separate(given)]
        for k, (tensor, place) in enumerate(zip(tensors, self._inputs, strict=True)):
            if tensor.shape != place.shape or tensor.dtype != place.dtype:
                raise SituateError(
                    f"input {k} is {described(tensor)}, the step was captured with "
                    f"{described(place)}: give such batches, or capture and plan for this one"
                )
        return tensors

    def _exchanged(
        self, given: Sequence[torch.Tensor]
    ) -> tuple[list[torch.Tensor] | None, list[torch.Tensor] | None]:
        """Inputs to read and results to write where the one device is in this process. Devices of
        their own find both in the common memory."""
        import torch

        apart = self._block is not None
        read = []
        for tensor, place in zip(given, self._inputs, strict=True):
            copies = apart or self._must_copy(tensor, place)
            if copies:
                place.copy_(tensor)  # which for a tensor of another kind returns one of that kind
            read.append(place if copies else tensor)
        return (None, None) if apart else (read, [torch.empty_like(r) for r in self._results])

    def _must_copy(self, tensor: torch.Tensor, place: torch.Tensor) -> bool:
        """Whether an input is laid out otherwise than it was captured, or a tensor of another kind,
        or state of the model, which the step changes."""
        import torch

        if type(tensor) is not torch.Tensor or tensor.is_conj() or tensor.is_neg():
            return True
        within = 0 <= tensor.data_ptr() - self._raw.data_ptr() < self._raw.nbytes
        return within or tensor.stride() != place.stride()

    def _started(self, said: list[Hyperparameters]) -> Team:
        hellos = [self._hello(d, device, said) for d, device in self._used]
        if self._block is None:
            (_, device), *_ = self._used
            return Here(device.name, hellos[0], self._raw, device.threads, self._commit)
        names = [device.name for _, device in self._used]
        return (self._start or Processes)(names, hellos, self._block, self._flags)

    def _hello(self, d: int, device: RealDevice, said: list[Hyperparameters]) -> Hello:
        import torch

        placed, names = self._placed, self._placed.names
        home = {names.state[path]: where for path, where in placed.home.items()}
        groups = self._bindings.groups
        text = partial(
            placed.sources[d].text,
            direct=not device.mirrored,
            commits=self._commits,
            laid_out=device.torch != "cpu",
        )
        share = Share(
            text(timed=False),
            text(timed=True),
            tuple(names.kernels),
            tuple(value for _, value in names.constants.values()),
            {k: groups[k] for k in self._updated if home[k] == d},
            placed.program.optimizer,
            len(placed.channels),
            len(names.seeds),
            self._seed,
            frozenset(k for k, where in home.items() if where == d),
            frozenset(k for k in self._overwritten if home.get(k) == d),
            one=names.one,
        )
        threads = device.threads or torch.get_num_threads()
        spin = SPIN if own_cores([device for _, device in self._used]) else 0.0
        modules = defining_modules(names.kernels)
        return Hello(
            self._common,
            share,
            device.torch,
            threads,
            said,
            device.mirrored,
            spin,
            modules,
            settings(),
        )


def _joined(inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Inputs as they were captured: those by name are one dict."""
    return (*inputs, named) if named else inputs
