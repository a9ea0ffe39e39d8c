"""Reports of small and of large steps in headless Chromium: bytes, seconds to the first picture and
of a zoom; and the seconds that the site takes to build."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lib import child
from benchmarks.lib.record import Row, Target, record
from tests.report.view.browser import SIZE, chromium

ZOOM = """() => new Promise((done) => {
  const start = performance.now();
  window.situate.view.zoom(0.6);
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""
"""Milliseconds from a zoom to the frame that shows it."""
FIRST = "() => performance.getEntriesByName('first-picture')[0].startTime"
SITE_SECONDS = 60.0
DOES_NOT_FIT = 3
"""Exit status of `plan` for a plan that is written although it does not fit."""


class Case(NamedTuple):
    """A step, the command that plans it, and the goals of its report."""

    command: tuple[str, ...]
    megabytes: float
    first_seconds: float
    zoom_seconds: float


CASES = {
    "demo": Case(
        ("inception_v3", "--cluster", "k80-4", "--slices", "4", "--time-limit", "5"), 3, 1.0, 0.1
    ),
    "llama_70b": Case(
        (
            *("benchmarks.search.large_slices:llama_70b", "--optimizer", "adamw"),
            *("--cluster", "h100-2x8", "--slices", "32", "--method", "one_f_one_b"),
        ),
        *(25, 5.0, 0.1),
    ),
}


def main(arguments: list[str] | None = None) -> None:
    """Plan, open, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = [_row(name, Path(folder), options.repeats) for name in options.cases]
        site = _site_seconds(Path(folder))
    targets = [target for row in rows for target in _targets(row)]
    fast = site <= SITE_SECONDS
    targets.append(Target("site from nothing", f"{SITE_SECONDS:g} s", f"{site:.0f} s", fast))
    record("report_pages", {"reports": rows}, targets, options=options)


def _row(name: str, folder: Path, repeats: int) -> Row:
    """The bytes of a report, and its medians over several visits."""
    path = folder / f"{name}.html"
    out = ("--out", str(folder / f"{name}.json"), "--report", str(path))
    process = child.run(child.situate("plan", *CASES[name].command, *out))
    if process.status not in (0, DOES_NOT_FIT):
        raise RuntimeError(process.errors)
    with chromium() as browser:
        visits = [_visit(browser, path) for _ in range(repeats)]
    return {
        "report": name,
        "megabytes": path.stat().st_size / 1e6,
        "first_seconds": statistics.median(first for first, _ in visits),
        "zoom_seconds": statistics.median(zoom for _, zooms in visits for zoom in zooms),
        "zoom_seconds_longest": max(zoom for _, zooms in visits for zoom in zooms),
    }


def _visit(browser: Any, path: Path) -> tuple[float, list[float]]:
    """Seconds to the first picture, and of each of ten zooms."""
    tab = browser.new_context(viewport=SIZE).new_page()
    tab.goto(path.as_uri())
    tab.wait_for_selector("body[data-state=shown]", timeout=120_000)
    zooms = [tab.evaluate(ZOOM) / 1e3 for _ in range(10)]
    first = tab.evaluate(FIRST) / 1e3
    tab.context.close()
    return first, zooms


def _site_seconds(folder: Path) -> float:
    """Wall seconds of the two commands of `make docs`, with pages and site in a fresh folder."""
    begin = time.perf_counter()
    build = ("-m", "mkdocs", "build", "-q", "--strict", "-f", "site/mkdocs.yml")
    for arguments in (("site/stage.py", "build/site/pages"), (*build, "-d", str(folder / "site"))):
        process = child.run([sys.executable, *arguments], {"NO_MKDOCS_2_WARNING": "1"})
        if process.status:
            raise RuntimeError(process.errors)
    return time.perf_counter() - begin


def _targets(row: Row) -> Iterator[Target]:
    case = CASES[row["report"]]
    for key, unit in (("megabytes", "MB"), ("first_seconds", "s"), ("zoom_seconds", "s")):
        goal = getattr(case, key)
        name = f"{row['report']}: {key.partition('_')[0]}"
        yield Target(name, f"{goal:g} {unit}", f"{row[key]:.2f} {unit}", row[key] <= goal)


if __name__ == "__main__":
    main()
