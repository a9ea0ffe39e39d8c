"""`python -m benchmarks.gpu.wheels`: fetch packages that a machine without a network may lack.

Downloads wheels of the versions in constraints.txt for Python 3.12 on x86-64 Linux, all but PyTorch
and its dependencies, and writes the commit of this checkout beside them. Packages that the machine
has already are not installed there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu.report import ROOT, checkout

FOLDER = Path("build/gpu/wheels")

COMMIT = "COMMIT"
"""The file beside the wheels that holds the commit."""

PYTHON = "3.12"

PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (34, 31, 28, 27, 26, 24, 17, 12, 5)]
"""Names that pip matches exactly."""

PACKAGES = (
    "msgspec", "numpy", "rich", "typer",
    "nanobind", "scikit-build-core",
    "hypothesis", "pytest",
    "safetensors", "transformers",
    "nvidia-ml-py",
)  # fmt: skip
"""situate's own needs; those of its build, of its tests, of the zoo's networks; NVIDIA's. Their
dependencies are fetched with them."""

UNUSED = ("hf_xet", "filelock", "fsspec", "typing_extensions")
"""Wheels that are fetched too, but need not travel: the first downloads models, and PyTorch needs
the others itself."""


def main(arguments: list[str] | None = None) -> None:
    """Fetch the wheels, and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="by default all")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(download(options.folder, options.packages), check=True)
    for file in options.folder.glob("*.whl"):
        if file.name.split("-")[0] in UNUSED:
            file.unlink()
    (options.folder / COMMIT).write_text(checkout() + "\n")
    sizes = [file.stat().st_size for file in options.folder.glob("*.whl")]
    print(f"{len(sizes)} wheels, {sum(sizes) / 2**20:.1f} MiB in {options.folder}")


def download(folder: Path, packages: list[str] | tuple[str, ...]) -> list[str]:
    """The command that fetches packages and their dependencies."""
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    return [
        *(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"),
        *("--only-binary=:all:", "--implementation", "cp"),
        *("--python-version", PYTHON, *platforms),
        *("-c", str(ROOT / "constraints.txt"), "-d", str(folder), *packages),
    ]


if __name__ == "__main__":
    main()
