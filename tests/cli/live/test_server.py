"""The server on the loopback."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from situate.cli.live.progress_file import begin_progress, progress_file
from situate.cli.live.server import serve, server_of
from situate.cli.live.state import live_state
from situate.errors import SituateError
from situate.report.view.document import live_page
from situate.results.result import Progress
from tests.report.handmade import chain
from tests.report.view.browser import chromium


@contextmanager
def _running(state: Callable[[], dict[str, Any]] | None) -> Iterator[str]:
    with server_of(b"<p>page", state) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def _get(address: str, **headers: str) -> bytes:
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        content: bytes = answer.read()
        return content


def test_it_serves_the_page_and_the_state() -> None:
    with _running(lambda: {"sections": []}) as address:
        assert _get(f"{address}/") == b"<p>page"
        assert json.loads(_get(f"{address}/state")) == {"sections": []}


def test_a_report_has_no_state() -> None:
    with _running(None) as address, pytest.raises(urllib.error.HTTPError, match="404"):
        _get(f"{address}/state")


def test_a_request_in_the_name_of_another_host_is_refused() -> None:
    with _running(None) as address, pytest.raises(urllib.error.HTTPError, match="403"):
        _get(f"{address}/", Host="evil.example")


def test_files_beside_the_page_are_not_served() -> None:
    with _running(None) as address, pytest.raises(urllib.error.HTTPError, match="404"):
        _get(f"{address}/../etc/passwd")


def test_it_listens_on_the_loopback_alone() -> None:
    with server_of(b"", None) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_refused() -> None:
    with server_of(b"", None) as server, pytest.raises(SituateError, match=r"--port \d+: .*in use"):
        server_of(b"", None, server.server_address[1])


def test_ctrl_c_ends_it(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupt)
    serve(b"", None)
    notes = capsys.readouterr().err.splitlines()
    assert notes[0].startswith("serving http://127.0.0.1:")
    assert notes[1] == "ended"


# The page of searches follows its server.
def test_the_page_shows_a_search_as_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begin_progress(str(path))
    with (
        chromium() as browser,
        server_of(live_page(), lambda: live_state([str(path)])) as server,
        progress_file(str(path), chain(4), "heft") as file,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        errors: list[str] = []
        tab = browser.new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        file.report(Progress(1.0, 9, 8.0, True, 2.0))
        tab.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        tab.get_by_text("8.00 s", exact=True).first.wait_for()
        assert tab.locator("svg path").count() == 2
        file.report(Progress(2.0, 12, 5.0, True, 2.0))
        tab.get_by_text("5.00 s", exact=True).first.wait_for()
        server.shutdown()
        server.server_close()
        tab.get_by_text("the server has ended").wait_for()
        assert errors == []
