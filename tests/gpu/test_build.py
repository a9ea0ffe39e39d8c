"""The wheels that a machine needs, and the versions that decide it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.gpu import build
from benchmarks.gpu.wheels import PACKAGES, download


@pytest.mark.parametrize(
    ("wheel", "least", "needed"),
    [
        ("numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl", "1.0", False),
        ("numpy-99.0-cp312-cp312-manylinux_2_28_x86_64.whl", "99.0", True),
        ("no_such_package-1.0-py3-none-any.whl", "0", True),
    ],
)
def test_a_wheel_is_installed_where_its_package_is_missing_or_too_old(
    wheel: str, least: str, needed: bool
) -> None:
    versions = {"numpy": build.version_of(least)}
    assert build.is_needed(Path(wheel), versions) is needed


def test_least_versions_are_those_of_the_project() -> None:
    least = build.minimums()
    assert least["msgspec"] >= (0, 20)
    assert least["transformers"] >= (5,)
    assert least["nanobind"] >= (2, 9)


@pytest.mark.parametrize(
    ("text", "version"), [("2.11.0+cu130", (2, 11, 0)), ("1.0rc1", (1, 0)), ("x", ())]
)
def test_a_version_is_its_leading_numbers(text: str, version: tuple[int, ...]) -> None:
    assert build.version_of(text) == version


def test_the_folder_of_packages_comes_first_on_the_path(tmp_path: Path) -> None:
    first, second, *_ = build.environment(tmp_path)["PYTHONPATH"].split(os.pathsep)
    assert (first, second) == (str(tmp_path), str(build.ROOT))


def test_pytorch_is_never_fetched_whose_builds_for_cuda_are_gigabytes() -> None:
    assert "torch" not in PACKAGES


def test_all_that_situate_needs_is_fetched() -> None:
    tools = {"accelerate", "clang-format", "cmake", "mypy", "ninja", "pytest-xdist", "ruff"}
    browser = {"axe-playwright-python", "playwright"}
    assert set(build.minimums()) - tools - browser - {"torch"} == set(PACKAGES)


def test_wheels_are_those_of_python_3_12(tmp_path: Path) -> None:
    command = download(tmp_path, ("msgspec",))
    assert command[-1] == "msgspec"
    assert command[command.index("--python-version") + 1] == "3.12"
