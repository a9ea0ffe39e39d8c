"""Settings of every test: the same examples in every run, and no verdict by the clock."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")

# A shell that starts tests in the background has them ignore Ctrl-C, and so would all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
