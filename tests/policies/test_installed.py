"""The error for a missing PyTorch says how to install it."""

from __future__ import annotations

import importlib.util

import pytest

from situate.errors import MissingExtra
from situate.policies import installed


def test_a_missing_pytorch_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"torch.*pip install 'situate\[torch\]'"):
        installed.check_torch()


def test_another_missing_package_is_named_too(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None if name == "other" else name)
    installed.check_torch()
    with pytest.raises(MissingExtra, match=r"needs other.*pip install 'situate\[torch\]'"):
        installed.check_torch("other")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_an_installed_pytorch_is_no_error():
    installed.check_torch()
