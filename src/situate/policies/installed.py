"""A check that the extra `torch` is installed, without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from situate.errors import MissingExtra


def check_torch(*others: str) -> None:
    """Check that PyTorch is installed.

    Args:
        others: further packages of the extra that must be installed.

    Raises:
        MissingExtra: PyTorch or one of them is not installed.
    """
    check_installed("torch", *others)


def check_installed(*packages: str) -> None:
    """Check that packages of the extra `torch` are installed.

    Raises:
        MissingExtra: one of them is not installed.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, "torch")
