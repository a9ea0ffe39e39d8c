"""A check that the extra `torch` is installed, without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from situate.errors import MissingExtra


def check_torch(*others: str) -> None:
    """
    Args:
        others: packages of the extra that are needed beside PyTorch.

    Raises:
        MissingExtra: PyTorch or one of them is not installed.
    """
    for package in ("torch", *others):
        if find_spec(package) is None:
            raise MissingExtra(package, "torch")
