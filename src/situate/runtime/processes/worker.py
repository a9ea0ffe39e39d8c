"""The process of one device: it maps the common memory, and runs its share when it is told to."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from situate.runtime.device import Share
from situate.runtime.model_state.common import Places
from situate.runtime.model_state.optimizers import Hyperparameters
from situate.runtime.processes.allocated import with_memory
from situate.runtime.processes.allocator import keep_freed_memory
from situate.runtime.settings import Settings, adopt

if TYPE_CHECKING:
    import torch

    from situate.runtime.device import Ran
    from situate.runtime.model_state.mirror import Mirror
    from situate.runtime.model_state.state import Entry

SPIN = 1e-3
"""Seconds to wait awake where no other device wants the core; waking up takes some 50e-6."""


@dataclass(frozen=True)
class Hello:
    """What a worker is told first.

    Attributes:
        places: of what the devices share.
        device: PyTorch's name of it.
        threads: that its kernels may use.
        hyperparameters: of the updates, by group.
        mirrored: it works on copies of the state in memory of its own.
        spin: seconds it waits awake for a tensor before it sleeps.
        modules: that define operators of its share.
        settings: of PyTorch, where the step is called.
    """

    places: Places
    share: Share
    device: str
    threads: int
    hyperparameters: list[Hyperparameters]
    mirrored: bool = False
    spin: float = SPIN
    modules: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)

    def set_process(self) -> None:
        """Set PyTorch in this process as it is told here."""
        import torch

        torch.set_num_threads(self.threads)
        adopt(self.settings)


@dataclass(frozen=True)
class Run:
    """One step.

    Attributes:
        timed: say when each op began and ended.
        hyperparameters: of the updates, by group; None where they are as before.
        memory: say what was allocated.
        changed: what of the state was changed from outside, see `Bindings.changed`.
        keep: the step is undone if it fails, so devices that have memory of their own take over all
            of the state when it begins, and bring it back when it ends.
        inputs, results: tensors to read and to write in this process, rather than those in the
            common memory.
    """

    step: int
    timed: bool
    hyperparameters: list[Hyperparameters] | None
    memory: bool = False
    changed: tuple[tuple[int, int], ...] = ()
    keep: bool = True
    inputs: Sequence[torch.Tensor] | None = None
    results: Sequence[torch.Tensor] | None = None


@dataclass(frozen=True)
class Store:
    """Bring back the state of devices that have memory of their own, after that step, with what
    was changed from outside since. Where it fails, some of the state is old."""

    step: int
    changed: tuple[tuple[int, int], ...] = ()
    keep = False


@dataclass(frozen=True)
class Failed:
    """Why a device did not end a step: `out_of_memory`, `aborted` or `error`, and the error."""

    reason: str
    text: str


def main(connection: int, block: int) -> None:
    """Serve the process at the other end until it hangs up.

    Args:
        connection: descriptor of a socket.
        block: descriptor of the common memory.
    """
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from situate.runtime.memory import mapped

    parent = Connection(connection)
    with contextlib.suppress(EOFError, OSError):
        hello: Hello = parent.recv()
        try:
            hello.set_process()
            work = Work(hello, mapped(block))
        except Exception as error:
            parent.send(failed(error))
            return
        parent.send("ready")
        while True:
            parent.send(work.run(parent.recv()))


class Work:
    """A device and what it works on.

    Args:
        raw: the common memory.
        commit: see `Device`.
    """

    def __init__(
        self, hello: Hello, raw: torch.Tensor, commit: Callable[[], None] | None = None
    ) -> None:
        import torch

        from situate import _core
        from situate.runtime.device import Device
        from situate.runtime.model_state.common import Common
        from situate.runtime.processes.channels import Channels
        from situate.runtime.programs.custom_ops import load

        load(hello.modules)
        self._where = device = torch.device(hello.device)
        self._common = common = Common(hello.places, raw)
        self._written: Sequence[torch.Tensor] = common.results
        results = [self._writer(k) for k in range(len(common.results))]
        channels = Channels(_core.make_flags(common.flags, hello.spin), common.slots, device)
        self._mirror = _mirror(hello, common.state, device) if hello.mirrored else None
        state = self._mirror.state if self._mirror else common.state
        self._device = Device(
            hello.share, state, channels, hello.hyperparameters, results, device, commit
        )

    def ran(self, order: Run) -> Ran:
        """Run a step, and bring back what has to be."""
        ran = self._run(order)
        if order.keep:
            self._stored(Store(order.step))
        return ran

    def _run(self, order: Run) -> Ran:
        if self._mirror and order.keep:
            self._mirror.load_all()
        elif self._mirror:
            self._mirror.load(order.changed)
        if order.hyperparameters is not None:
            self._device.tell(order.hyperparameters)
        inputs, run = order.inputs or self._common.inputs, self._device.run
        self._written = order.results or self._common.results
        try:
            if order.memory:
                called = partial(run, order.step, inputs, order.timed, "perf_counter")
                return with_memory(called, self._where)
            return run(order.step, inputs, order.timed)
        finally:
            self._written = self._common.results

    def close(self) -> None:
        """Let go of the device's memory."""
        self._device.close()

    def _writer(self, result: int) -> Callable[[torch.Tensor], object]:
        return lambda value: self._written[result].copy_(value)

    def _stored(self, order: Store) -> str:
        if self._mirror:
            self._mirror.load(order.changed)
            self._mirror.store(order.step)
        return "stored"

    def run(self, order: Run | Store) -> Any:
        """What the device says of a step, or why it failed."""
        from situate.runtime.processes.channels import Aborted

        try:
            if isinstance(order, Store):
                return self._stored(order)
            return self.ran(order)
        except Aborted:
            return Failed("aborted", "")
        except Exception as error:
            return failed(error)


def _mirror(hello: Hello, host: list[Entry], device: torch.device) -> Mirror:
    from situate.runtime.model_state.mirror import Mirror

    changed = [*hello.share.updates, *hello.share.copied]
    return Mirror(host, hello.share.here, changed, device)


def failed(error: Exception) -> Failed:
    """What an error is to the process that hears of it."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return Failed("out_of_memory", str(error))
    memory = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
    return Failed("out_of_memory" if memory else "error", f"{type(error).__name__}: {error}")
