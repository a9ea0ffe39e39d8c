"""A server of one page on this machine's loopback, until Ctrl-C."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from situate.cli.terminal import note
from situate.errors import SituateError

LOOPBACK = "127.0.0.1"
State = Callable[[], dict[str, Any]]


def serve(page: bytes, state: State | None, port: int = 0, is_open: bool = False) -> None:
    """Serve a page, and its state as JSON under /state, until Ctrl-C.

    Args:
        page: the document.
        state: called for each request of the state; None for a page without any.
        port: 0 for a free one.
        is_open: show the page in the browser.

    Raises:
        SituateError: the port is in use or not allowed.
    """
    with server_of(page, state, port) as server:
        address = f"http://{LOOPBACK}:{server.server_address[1]}/"
        note(f"serving {address} until Ctrl-C")
        if is_open and not webbrowser.open(address):
            note("found no browser: open the address yourself")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            note("ended")


def server_of(page: bytes, state: State | None, port: int = 0) -> ThreadingHTTPServer:
    """The server of `serve`, bound to the loopback.

    Raises:
        SituateError: the port is in use or not allowed.
    """
    try:
        server = ThreadingHTTPServer((LOOPBACK, port), partial(_Handler, page, state))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SituateError(f"--port {port}: {reason}: give another one, or leave it out") from None
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    """Answers requests for the page and its state."""

    def __init__(self, page: bytes, state: State | None, *arguments: Any) -> None:
        self.page, self.state = page, state
        super().__init__(*arguments)

    def do_GET(self) -> None:
        # A page elsewhere may let its own name resolve to this machine; its requests carry it.
        port = self.server.server_address[1]  # type: ignore[index]
        if self.headers.get("Host") not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", b"for this machine only")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.page)
        elif self.path == "/state" and self.state is not None:
            self._answer(HTTPStatus.OK, "application/json", msgspec.json.encode(self.state()))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"no such page")

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: a line for each request would hide the notes."""
