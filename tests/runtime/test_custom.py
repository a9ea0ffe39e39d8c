"""Operators of a user's own are known by the module that defines them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.custom import defining_modules, load  # noqa: E402
from tests.runtime import misbehaving  # noqa: E402

KERNELS = ["aten::add.Tensor", "situate_tests::harm", "situate_tests::pass_on.default"]


def test_only_operators_of_a_users_own_need_a_module() -> None:
    assert defining_modules(KERNELS) == (misbehaving.__name__,)
    assert defining_modules(KERNELS[:1]) == ()


def test_what_is_loaded_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tests.runtime.models")
    load(["tests.runtime.models"])
    assert "tests.runtime.models" in sys.modules


def test_what_lies_in_the_current_directory_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "operators_here.py").touch()
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    load(["operators_here"])
    assert sys.modules.pop("operators_here").__file__ == str(tmp_path / "operators_here.py")
    assert sys.path == before
