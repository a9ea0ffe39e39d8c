"""A headless Chromium for the tests of reports."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
SIZE = {"width": 1280, "height": 800}


@contextmanager
def chromium(*arguments: str) -> Iterator[Any]:
    """Starts Chromium, or skips the test where it or Playwright is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        # A process of root cannot use Chromium's sandbox.
        options = {
            "executable_path": CHROMIUM,
            "args": ["--no-sandbox", "--disable-dev-shm-usage", *arguments],
        }
        browser = driver.chromium.launch(**options)
        yield browser
        browser.close()


class Visit:
    """A report in a tab, with all that went wrong there.

    Attributes:
        tab: Playwright's page.
        errors: errors in the console and of scripts, and dialogs.
        requests: addresses that the page asked for.
    """

    def __init__(self, browser: Any, path: Path, script: str = "", **options: Any) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.tab = browser.new_context(viewport=SIZE, **options).new_page()
        self.tab.on("console", self._log)
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("dialog", self._dismiss)
        self.tab.on("request", lambda request: self.requests.append(request.url))
        if script:
            self.tab.add_init_script(script)
        self.tab.goto(path.resolve().as_uri())
        self.tab.wait_for_selector("body[data-state]")
        self._frames()

    def _log(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _frames(self) -> None:
        """Waits until the page has painted."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def evaluate(self, script: str) -> Any:
        return self.tab.evaluate(script)

    def text(self, selector: str) -> str:
        return self.tab.inner_text(selector)

    def press(self, key: str) -> None:
        self.tab.keyboard.press(key)
        self._frames()

    def click(self, selector: str) -> None:
        self.tab.click(selector)
        self._frames()

    def type(self, selector: str, text: str) -> None:
        self.tab.fill(selector, text)
        self._frames()

    def picture(self, plan: int = 0) -> list[int]:
        """The pixels of a timeline, one of every seven rows and columns."""
        return self.evaluate(
            f"""(() => {{
              const canvas = window.situate.panes[{plan}].canvas;
              const {{ data, width, height }} =
                canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              const pixels = [];
              for (let y = 0; y < height; y += 7) for (let x = 0; x < width; x += 7) {{
                for (let c = 0; c < 3; c++) pixels.push(data[4 * (y * width + x) + c]);
              }}
              return pixels;
            }})()"""
        )

    def point(self, op: int, plan: int = 0) -> tuple[float, float]:
        """The middle of an op's bar in the window."""
        x, y = self.evaluate(
            f"""(() => {{
              const pane = window.situate.panes[{plan}];
              const {{ start, end, device }} = pane.plan.ops;
              const row = pane.rows[device[{op}]];
              const box = pane.canvas.getBoundingClientRect();
              const x = pane.x((start[{op}] + end[{op}]) / 2);
              return [box.left + x, box.top + row.top - pane.scroller.scrollTop + row.bar / 2];
            }})()"""
        )
        return x, y

    def hover(self, x: float, y: float) -> None:
        self.tab.mouse.move(x, y)
        self._frames()

    def click_at(self, x: float, y: float) -> None:
        self.tab.mouse.click(x, y)
        self._frames()


def unlike(first: list[int], second: list[int]) -> float:
    """The share of values that differ by more than a shade between two pictures of one size."""
    pairs = zip(first, second, strict=True)
    return sum(abs(a - b) > 8 for a, b in pairs) / len(first)
