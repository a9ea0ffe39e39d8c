"""The program and the machine of a measurement."""

from __future__ import annotations

import subprocess

import pytest

from situate.bench import provenance as module
from situate.bench.provenance import commit, machine, provenance, versions
from situate.version import VERSION


def test_a_process_has_one_provenance():
    assert provenance() is provenance()
    assert provenance().version == VERSION
    assert len(provenance().program) == 12


def test_a_machine_has_what_this_process_may_use():
    assert machine().cores >= 1
    assert machine().cpu


def test_what_is_not_installed_has_no_version(monkeypatch):
    assert versions()["numpy"]
    assert module._installed("no-such-package") is None


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one file."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("1")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True)
    return tmp_path


def test_a_commit_is_dirty_where_a_file_differs_from_it(checkout):
    clean = commit(checkout)
    assert len(clean) == 40
    (checkout / "file").write_text("2")
    assert commit(checkout) == f"{clean}+dirty"
    assert commit(checkout, ("other",)) == clean


def test_a_package_outside_of_a_checkout_has_no_commit(checkout, monkeypatch):
    installed = checkout / "site-packages"
    installed.mkdir()
    (installed / "__init__.py").touch()
    monkeypatch.setattr(module, "PACKAGE", installed)
    assert module._own_commit() == ""
