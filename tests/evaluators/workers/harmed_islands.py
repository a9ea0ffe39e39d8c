"""Islands that end the process of their worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from situate.solvers.auto.improve import improve
from situate.solvers.search import Search

FOLDER = "SITUATE_TEST_HARM"
"""The environment variable with a folder, in which a file says that the harm is done."""


def killed_once(search: Search, first: bool, full: bool) -> None:
    """As if somebody killed the first process that searches."""
    try:
        Path(os.environ[FOLDER], "done").touch(exist_ok=False)
    except FileExistsError:
        improve(search, first, full)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def killed_where_it_is_a_worker(search: Search, first: bool, full: bool) -> None:
    """As if every worker was killed."""
    if "SITUATE_DEVICE" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    improve(search, first, full)
