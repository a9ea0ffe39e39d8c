"""Memory that a reader takes beside the content that it is given."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def peak_bytes(read: Callable[[], object]) -> int:
    """Bytes that Python held at most while `read` ran."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
