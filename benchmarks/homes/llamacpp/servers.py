"""Several devices on one machine: RPC servers on loopback ports, each with the CPU behind it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from situate.errors import SituateError

HOST = "127.0.0.1"
START_SECONDS, END_SECONDS = 20.0, 5.0
STEP_SECONDS = 0.05


@contextmanager
def rpc_servers(programs: Path, count: int) -> Iterator[list[str]]:
    """Endpoints of so many RPC servers, which end with the block, whatever ends it.

    Raises:
        SituateError: a server does not start.
    """
    processes: list[subprocess.Popen[Any]] = []
    try:
        ports = free_ports(count)
        for port in ports:
            command = [str(programs / "ggml-rpc-server"), "-H", HOST, "-p", str(port), "-t", "1"]
            processes.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
        for port, process in zip(ports, processes, strict=True):
            _wait(port, process)
        yield [f"{HOST}:{port}" for port in ports]
    finally:
        end(processes)


def end(processes: Sequence[subprocess.Popen[Any]], seconds: float = END_SECONDS) -> None:
    """End processes, and kill those that still run after so many seconds."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _wait(port: int, process: subprocess.Popen[Any]) -> None:
    """Wait until a server accepts connections.

    Raises:
        SituateError: it has ended, or takes too long.
    """
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        try:
            socket.create_connection((HOST, port), STEP_SECONDS).close()
            return
        except OSError:
            time.sleep(STEP_SECONDS)
    raise SituateError(f"ggml-rpc-server on port {port} does not start")
