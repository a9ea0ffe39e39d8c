"""A check that PyTorch is installed, without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from situate.errors import MissingExtra


def check_torch() -> None:
    """
    Raises:
        MissingExtra: PyTorch is not installed.
    """
    if find_spec("torch") is None:
        raise MissingExtra("torch", "torch")
