"""The process of one device: it maps the common memory, and runs its share when it is told to."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from situate.runtime.allocated import with_memory
from situate.runtime.allocator import keep_freed_memory
from situate.runtime.device import Share
from situate.runtime.memory import Place
from situate.runtime.optimizers import Hyperparameters
from situate.runtime.parent import die_with_parent
from situate.runtime.settings import Settings, adopt
from situate.runtime.state import EntryPlaces

if TYPE_CHECKING:
    import torch

    from situate.runtime.device import Ran
    from situate.runtime.mirror import Mirror
    from situate.runtime.state import Entry

SPIN = 1e-3
"""Seconds to wait awake where no other device wants the core; waking up takes some 50e-6."""


@dataclass(frozen=True)
class Common:
    """Where the devices of a placed step find what they share in the one block of memory."""

    state: list[EntryPlaces]
    flags: Place
    slots: tuple[Place, ...]
    inputs: tuple[Place, ...]
    results: tuple[Place, ...]


@dataclass(frozen=True)
class Hello:
    """What a worker is told first.

    Attributes:
        device: PyTorch's name of it.
        threads: that its kernels may use.
        said: by group, the hyperparameters of the updates.
        mirrored: it works on copies of the state in memory of its own.
        spin: seconds it waits awake for a tensor before it sleeps.
        modules: that define operators of its share.
        settings: of PyTorch, where the step is called.
    """

    common: Common
    share: Share
    device: str
    threads: int
    said: list[Hyperparameters]
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
        said: by group, the hyperparameters of the updates; None where they are as before.
        memory: say what was allocated.
        changed: what of the state was changed from outside, see `Bindings.changed`.
        keep: the step is undone if it fails, so devices that have memory of their own take over all
            of the state when it begins, and bring it back when it ends.
        inputs, results: tensors to read and to write in this process, rather than those in the
            common memory.
    """

    step: int
    timed: bool
    said: list[Hyperparameters] | None
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
    die_with_parent()
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from situate.runtime.memory import mapped

    parent = Connection(connection)
    hello: Hello = parent.recv()
    try:
        hello.set_process()
        work = Work(hello, mapped(block))
    except Exception as error:
        parent.send(failed(error))
        return
    parent.send("ready")
    while True:
        try:
            parent.send(work.run(parent.recv()))
        except (EOFError, OSError):
            return


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
        from situate.runtime.channels import Channels
        from situate.runtime.custom import load
        from situate.runtime.device import Device
        from situate.runtime.state import Entry

        load(hello.modules)
        self._where = device = torch.device(hello.device)
        common = hello.common
        flags = _core.make_flags(common.flags.view(raw).numpy().view("uint32"), hello.spin)
        slots = [place.view(raw) for place in common.slots]
        self._inputs = [place.view(raw) for place in common.inputs]
        self._results = [place.view(raw) for place in common.results]
        self._written: Sequence[torch.Tensor] = self._results
        results = [self._writer(k) for k in range(len(self._results))]
        channels = Channels(flags, slots, device)
        state = [Entry.at(places, raw) for places in common.state]
        self._mirror = _mirror(hello, state, device) if hello.mirrored else None
        state = self._mirror.state if self._mirror else state
        self._device = Device(hello.share, state, channels, hello.said, results, device, commit)

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
        if order.said is not None:
            self._device.tell(order.said)
        inputs, run = order.inputs or self._inputs, self._device.run
        self._written = order.results or self._results
        try:
            if order.memory:
                called = partial(run, order.step, inputs, order.timed, "perf_counter")
                return with_memory(called, self._where)
            return run(order.step, inputs, order.timed)
        finally:
            self._written = self._results

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
        from situate.runtime.channels import Aborted

        try:
            if isinstance(order, Store):
                return self._stored(order)
            return self.ran(order)
        except Aborted:
            return Failed("aborted", "")
        except Exception as error:
            return failed(error)


def _mirror(hello: Hello, host: list[Entry], device: torch.device) -> Mirror:
    from situate.runtime.mirror import Mirror

    changed = [*hello.share.updates, *hello.share.copied]
    return Mirror(host, hello.share.here, changed, device)


def failed(error: Exception) -> Failed:
    """What an error is to the process that hears of it."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return Failed("out_of_memory", str(error))
    memory = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
    return Failed("out_of_memory" if memory else "error", f"{type(error).__name__}: {error}")
