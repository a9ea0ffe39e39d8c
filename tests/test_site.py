"""The documentation site: it builds without a warning, and its search finds things."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import string
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import situate
from tests.report.view.browser import chromium

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; broken links end the build."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed (pip install '.[docs]')")
    folder = tmp_path_factory.mktemp("site")
    pages = ROOT / "build" / "site" / "pages"
    build = ("-m", "mkdocs", "build", "--strict", "-f", SITE / "mkdocs.yml", "-d", folder)
    for arguments in ((SITE / "stage.py", pages), build):
        run = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on this machine's loopback: search needs a server."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


def test_the_reference_has_every_public_name(site: Path) -> None:
    reference = (site / "reference.html").read_text()
    names = {*situate.__all__} - {"__version__", "zoo"}
    assert {name for name in names if f'.{name}"' not in reference} == set()


def test_links_to_the_source_lead_to_text(site: Path) -> None:
    page = (site / "docs" / "methods" / "heft.html").read_text()
    assert "src/situate/solvers/heuristics/list_rules.py.txt" in page
    assert (site / "src/situate/solvers/heuristics/list_rules.py.txt").is_file()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "fonts.googleapis.com" not in page
    assert 'src="http' not in page


# In a browser.
def test_search_finds_out_of_memory(address: str) -> None:
    with chromium() as browser:
        tab = browser.new_page()
        errors: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(f"{address}/index.html")
        tab.keyboard.press("/")
        tab.keyboard.type("out of memory")
        tab.locator(".md-search-result__item a").first.wait_for()
        assert "memory" in tab.inner_text(".md-search-result__list").lower()
        assert errors == []


# A search for a letter goes through all words that begin with it.
def test_search_ends_at_no_word_of_the_site(address: str) -> None:
    with chromium() as browser:
        tab = browser.new_page()
        logs: list[str] = []
        tab.on("console", lambda message: logs.append(message.text))
        tab.goto(f"{address}/index.html")
        tab.keyboard.press("/")
        for letter in string.ascii_lowercase + string.digits:
            tab.locator(".md-search__input").press_sequentially(letter)
            tab.wait_for_timeout(100)
            tab.keyboard.press("Backspace")
        tab.keyboard.type("memory")
        tab.locator(".md-search-result__item a").first.wait_for()
        assert logs == []


def test_axe_has_no_serious_finding_on_the_front_page(address: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with chromium() as browser:
        for scheme in ("light", "dark"):
            tab = browser.new_context(color_scheme=scheme).new_page()
            tab.goto(f"{address}/index.html")
            findings = axe.run(tab).response["violations"]
            serious = [f for f in findings if f["impact"] in ("serious", "critical")]
            assert [(f["id"], f["nodes"][0]["html"][:200]) for f in serious] == []
