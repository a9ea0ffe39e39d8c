"""Stage: tests of the runtime, on this machine.

Those that know CUDA take it where it is there. The outcome of every test is noted when it ends, so
that a test that hangs costs no other its outcome.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from typing import Any

import pytest

from benchmarks.gpu.process import Context
from benchmarks.gpu.report import ROOT
from benchmarks.gpu.stages import trim

TESTS = ("tests/runtime", "tests/profiling/test_cuda.py")

MOST_FAILURES, LONGEST_FAILURE = 30, 700


class Outcomes:
    """A plugin of pytest that notes each outcome."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts: Counter[str] = Counter()
        self._failures: dict[str, str] = {}
        self._running = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note which test began last."""
        self._running = nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count an outcome; keep the text of a failure."""
        if report.failed:
            if len(self._failures) < MOST_FAILURES:
                self._failures[report.nodeid] = trim(report.longreprtext, LONGEST_FAILURE)
            self._counts["failed" if report.when == "call" else "errors"] += 1
        elif report.skipped or report.when == "call":
            self._counts[report.outcome] += 1
        self._context.note(counts=dict(self._counts), failures=self._failures, latest=self._running)

    def pytest_collectreport(self, report: Any) -> None:
        """Keep the text of a file that cannot be collected."""
        if report.failed:
            self._counts["errors"] += 1
            self._failures[report.nodeid] = trim(str(report.longrepr), LONGEST_FAILURE)
            self._context.note(counts=dict(self._counts), failures=self._failures)


def measure(context: Context) -> None:
    """Run the tests that an expression of pytest's `-k` chooses, in the files that follow it."""
    expression, *files = context.arguments
    context.take_device()
    os.chdir(ROOT)
    workers = ["-n", "8"] if importlib.util.find_spec("xdist") and not context.tiny else []
    options = ["-q", "-p", "no:cacheprovider", "-k", expression, *workers]
    status = pytest.main([*options, *(files or TESTS)], plugins=[Outcomes(context)])
    context.note(status=int(status))
