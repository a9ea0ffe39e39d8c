"""Processes that start in milliseconds: each forks from a server that has loaded PyTorch.

A fresh interpreter needs two seconds of work to load PyTorch, which is most of the work of a test
with workers. A fork has the same modules, arguments, descriptors and environment as the interpreter
it replaces, and it is a child of the tests' process. Tests of the start itself start interpreters.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

AVAILABLE = (
    sys.platform == "linux" and find_spec("torch") is not None and "LD_PRELOAD" not in os.environ
)
"""False where no process can adopt orphans, nothing is slow to load, or sanitizers watch forks."""

PR_SET_CHILD_SUBREAPER = 36

SERVER = "import sys; from tests.forks import serve; serve(int(sys.argv[1]))"

WORKERS = ("import main; main(", "import run_worker; run_worker(")
"""Parts of the programs of workers."""

MODULES = (
    "torch",
    "situate.evaluators.hardware.workers",
    "situate.evaluators.workers.worker",
    "situate.runtime.device",
    "situate.runtime.model_state.state",
    "situate.runtime.processes.channels",
    "situate.runtime.programs.custom_ops",
)
"""Modules that a server loads before its first fork."""

REQUEST_BYTES, MAX_DESCRIPTORS, FIRST_FREE = 2**17, 64, 512
"""Largest size of a request, most descriptors in it, and a number above all of them."""


class ForkServer:
    """A process that forks children for this one, and ends with it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            command = [sys.executable, "-P", "-c", SERVER, str(theirs.fileno())]
            path = os.pathsep.join((str(Path(__file__).parents[1]), *sys.path))
            self.process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def fork(
        self,
        code: str,
        arguments: Sequence[str],
        descriptors: Sequence[int],
        environment: dict[str, str],
        outputs: tuple[int, int] = (1, 2),
    ) -> int:
        """The number of a child of this process, in a session of its own.

        Args:
            code, arguments: of the interpreter that the child replaces.
            descriptors: to inherit, under the same numbers.
            environment: all of its variables.
            outputs: descriptors of its standard output and error.
        """
        request = {
            "code": code,
            "arguments": list(arguments),
            "descriptors": list(descriptors),
            "environment": environment,
            "folder": os.getcwd(),
            "parent": os.getpid(),
        }
        with self._lock:
            # A process whose parent has ended becomes a child of this one instead of init's.
            _adopt_orphans(True)
            try:
                socket.send_fds(
                    self._socket, [json.dumps(request).encode()], [*outputs, *descriptors]
                )
                return int(self._socket.recv(32))
            finally:
                _adopt_orphans(False)

    def close(self) -> None:
        """End the server; its children go on."""
        self._socket.close()
        self.process.wait()


def _adopt_orphans(yes: bool) -> None:
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0):
        raise OSError("no subreaper")


def serve(connection: int) -> None:
    """Fork a child for every request, until the process at the other end hangs up."""
    for module in MODULES:
        __import__(module)
    with socket.socket(fileno=connection) as requests:
        while True:
            content, received, *_ = socket.recv_fds(requests, REQUEST_BYTES, MAX_DESCRIPTORS)
            if not content:
                os._exit(0)
            request = json.loads(content)
            requests.send(str(_fork_orphan(request, received, requests)).encode())
            for descriptor in received:
                os.close(descriptor)


def _fork_orphan(request: dict[str, Any], received: list[int], requests: socket.socket) -> int:
    """Fork a process whose parent ends at once; its number."""
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        if os.fork():
            os._exit(0)
        # Whoever knows the number may kill the session.
        os.setsid()
        os.write(writer, str(os.getpid()).encode())
        os.close(reader)
        os.close(writer)
        requests.close()
        _run(request, received)
    os.close(writer)
    with os.fdopen(reader) as number:
        os.waitpid(between, 0)
        return int(number.read())


def _run(request: dict[str, Any], received: list[int]) -> None:
    """Run the code of a request in this process, like a fresh interpreter, and exit."""
    status = 0
    try:
        while os.getppid() != request["parent"]:
            time.sleep(0.0005)
        _set_up(request, received)
        exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        traceback.print_exc()
        if isinstance(error, KeyboardInterrupt):  # Python ends by the signal itself
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _set_up(request: dict[str, Any], received: list[int]) -> None:
    import torch

    os.chdir(request["folder"])
    # First to numbers that nothing uses, because a descriptor may arrive under another's number.
    free = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, FIRST_FREE) for descriptor in received]
    for descriptor in received:
        os.close(descriptor)
    for descriptor, number in zip(free, (1, 2, *request["descriptors"]), strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    environment = request["environment"]
    os.environ.clear()
    os.environ.update(environment)
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = dict.fromkeys([*filter(None, folders), *sys.path])
    sys.argv = ["-c", *request["arguments"]]
    # Of the server's generator every fork has the same state.
    torch.seed()
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or os.cpu_count() or 1))


class ForkedProcess(subprocess.Popen[bytes]):
    """A `Popen` of `python -P -c` whose process a server forks."""

    def __init__(
        self,
        server: ForkServer,
        args: Sequence[str],
        *,
        env: dict[str, str],
        pass_fds: Sequence[int] = (),
        stdout: int | None = None,
        stderr: int | None = None,
        **_: object,
    ) -> None:
        # The attributes that waiting and polling read.
        self.args, self.returncode, self.stdin, self.stdout, self.stderr = (
            args,
            None,
            None,
            None,
            None,
        )
        self._waitpid_lock, self._child_created = threading.Lock(), False
        _, _, _, code, *arguments = args
        with open(os.devnull, "wb") as null:
            outputs = null.fileno() if stdout else 1, null.fileno() if stderr else 2
            self.pid = server.fork(code, arguments, pass_fds, env, outputs)
        self._child_created = True


class Starter:
    """Stands in for the module `subprocess` where workers start: they become forks.

    Programs of tests, which end in other ways than workers do, start interpreters.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self) -> None:
        self._server: ForkServer | None = None

    def Popen(self, args: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process; see `subprocess.Popen`."""
        if not any(program in args[3] for program in WORKERS):
            return subprocess.Popen(args, **options)
        return ForkedProcess(self._started(), args, **options)

    def run(self, code: str) -> int:
        """The exit status of Python code in a process of its own."""
        command = [sys.executable, "-P", "-c", code]
        if not AVAILABLE:
            return subprocess.run(command, timeout=120, check=False).returncode
        process = ForkedProcess(self._started(), command, env=dict(os.environ))
        try:
            return process.wait(120)
        finally:
            process.kill()
            process.wait()

    def _started(self) -> ForkServer:
        if self._server is None:
            self._server = ForkServer()
        return self._server

    def close(self) -> None:
        """End the server, if there is one."""
        if self._server is not None:
            self._server.close()
