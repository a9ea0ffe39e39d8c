"""Workers as actors of a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from situate.errors import MissingExtra, SituateError
from situate.evaluators.workers.messages import (
    Answer,
    Failure,
    Hello,
    Message,
    Ready,
    Unready,
    Work,
)
from situate.evaluators.workers.worker import Worker, greeting
from situate.evaluators.workers.workers import NoWorkers

LOOPBACK = "127.0.0.1"

TOKEN_FILE, TOKEN_VARIABLES = Path("~/.ray/auth_token"), ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""Ray's file with its token, and the environment variables that name another."""

NICENESS_SETTING = ("RAY_worker_niceness", "0")
"""The setting that runs Ray's workers at the priority of other processes."""

CONNECT_SECONDS = 5.0
"""Seconds for a cluster to accept a connection."""


class RayWorkers:
    """Workers wherever Ray has the resources; they are identified by their pending messages.

    Ray restarts none of them: the dispatcher does, so it knows which tasks were lost.

    Args:
        ray: the module, connected to a cluster.
        packed: their evaluator or function, see `Worker`.
        cpus, gpus: of each worker.
    """

    def __init__(self, ray: Any, packed: bytes, cpus: int = 1, gpus: int = 0) -> None:
        self._ray = ray
        needs = {"num_cpus": cpus, "num_gpus": gpus}
        self._actor = ray.remote(**needs, max_restarts=0, max_task_retries=0)(_Actor)
        self._board = ray.remote(num_cpus=0)(_MetricsBoard)
        self._board_actor: Any = None
        # One copy in the object store serves all workers.
        self._packed = ray.put(packed)
        self._actors: dict[int, Any] = {}
        self._awaited: dict[Any, int] = {}

    def start(self, worker: int) -> None:
        """See `Workers`."""
        with self._connected():
            actor = self._actors[worker] = self._actor.remote()
            self._awaited[actor.hello.remote()] = worker

    def equip(self, worker: int) -> None:
        """See `Workers`."""
        with self._connected():
            self._awaited[self._actors[worker].equip.remote(self._packed)] = worker

    def give(self, worker: int, task: Work) -> None:
        """See `Workers`."""
        with self._connected():
            self._awaited[self._actors[worker].do.remote(task)] = worker

    def wait(self, seconds: float | None) -> list[tuple[int, Message]]:
        """See `Workers`."""
        awaited = list(self._awaited)
        with self._connected():
            ready, _ = self._ray.wait(awaited, num_returns=1, timeout=seconds)
            if ready:  # and all other answers that are ready
                ready, _ = self._ray.wait(awaited, num_returns=len(awaited), timeout=0)
            messages = []
            for reference in ready:
                worker = self._awaited.pop(reference, None)
                if worker is not None:  # None if its worker was lost with an earlier task
                    messages.append((worker, self._receive(reference, worker)))
            return messages

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """A block of calls to the cluster.

        Raises:
            NoWorkers: the cluster is lost.
        """
        try:
            if not self._ray.is_initialized():  # Ray would connect to any other cluster
                raise ConnectionError
            yield
        except ConnectionError:
            raise NoWorkers(
                "workers: the connection to the Ray cluster is lost: start it again; a study goes "
                "on with the same command"
            ) from None

    def _receive(self, reference: Any, worker: int) -> Message:
        try:
            answer: Message = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self.stop(worker)
            return Failure(f"was lost ({_first_line(error)})")
        return answer

    def show(self, figures: Mapping[str, float]) -> None:
        """Show the figures on Ray's dashboard, as gauges whose names begin with `situate_`."""
        with self._connected():
            if self._board_actor is None:
                self._board_actor = self._board.remote()
            self._board_actor.show.remote(dict(figures))

    def stop(self, worker: int) -> None:
        """See `Workers`."""
        actor = self._actors.pop(worker)
        self._awaited = {
            reference: number for reference, number in self._awaited.items() if number != worker
        }
        self._kill(actor)

    def _kill(self, actor: Any) -> None:
        with suppress(self._ray.exceptions.RayError, NoWorkers), self._connected():
            self._ray.kill(actor)

    def close(self) -> None:
        """See `Workers`."""
        for worker in list(self._actors):
            self.stop(worker)
        if self._board_actor is not None:
            self._kill(self._board_actor)
            self._board_actor = None


class _Actor:
    """A worker in a process of Ray."""

    def __init__(self) -> None:
        self._worker = Worker()

    def hello(self) -> Hello:
        return greeting()

    def equip(self, packed: bytes) -> Ready | Unready | Answer:
        return self._worker.unpack(packed)

    def do(self, task: Work) -> Answer:
        return self._worker.do(task)


class _MetricsBoard:
    """Gauges of Ray's metrics, in a process of the cluster; Ray drops those of a client."""

    def __init__(self) -> None:
        self._gauges: dict[str, Any] = {}

    def show(self, figures: dict[str, float]) -> None:
        from ray.util.metrics import Gauge

        for name, value in figures.items():
            if name not in self._gauges:
                title = "situate_" + name.replace("/", "_")
                self._gauges[name] = Gauge(title, f"{name} of a search by situate")
            self._gauges[name].set(value)


@contextmanager
def ray_cluster(address: str | None, count: int | None = None) -> Iterator[Any]:
    """A block with a connection to a cluster, by the module `ray`.

    Args:
        address: `ray://HOST:PORT`; None to start a cluster on this machine, which accepts only
            holders of its token and ends with the block.
        count: CPUs of the new cluster.

    Raises:
        MissingExtra: Ray is not installed.
        SituateError: no cluster answers at the address, or this process is connected to one
            already.
    """
    _authenticate(address)
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    if ray.is_initialized():
        raise SituateError(
            "workers: this process is connected to a Ray cluster already: call ray.shutdown() first"
        )
    try:
        _connect(ray, address, count)
        yield ray
    finally:
        ray.shutdown()


def _authenticate(address: str | None) -> None:
    """Have Ray show its token.

    A cluster of this process always needs it, as its ports are open to other machines. Ray's client
    does not show it to another cluster unless told.
    """
    has_token_variable = any(os.environ.get(name) for name in TOKEN_VARIABLES)
    if address is None:
        os.environ["RAY_AUTH_MODE"] = "token"
    elif has_token_variable or TOKEN_FILE.expanduser().exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _connect(ray: Any, address: str | None, count: int | None) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address is not None:
            _check_listening(address)
            ray.init(address, **quiet)
        else:
            # "local": another cluster that runs on this machine is not this command's.
            os.environ.setdefault(*NICENESS_SETTING)
            quiet |= {"include_dashboard": False, "_node_ip_address": LOOPBACK}
            ray.init("local", num_cpus=count, **quiet)
    except Exception as error:  # Ray has no error of its own for a slow start
        raise SituateError(
            f"workers: no Ray cluster answers at {address or LOOPBACK} ({_first_line(error)}): "
            f"start it, and put the token that it wants into {TOKEN_FILE}; or give a number of "
            "processes of this machine"
        ) from None


def _check_listening(address: str) -> None:
    """Check that an address accepts connections.

    Raises:
        OSError: none does; Ray itself would need half a minute to find out.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host, int(port)), CONNECT_SECONDS).close()


def worker_capacity(ray: Any, cpus: int = 1, gpus: int = 0) -> int:
    """Number of workers with these CPUs and GPUs that fit on the machines of a cluster.

    Raises:
        SituateError: none fits.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    capacity = sum(
        min(
            int(node.get(name, 0)) // count
            for name, count in (("CPU", cpus), ("GPU", gpus))
            if count
        )
        for node in nodes
    )
    if not capacity:
        need = f"the {cpus} CPUs and {gpus} GPUs" if cpus > 1 or gpus else "a CPU"
        raise SituateError(
            f"workers: no machine of the Ray cluster has {need} that a worker needs: start a node "
            "that has"
        )
    return capacity


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
