"""Archives given as a model file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

import situate
from situate.errors import ReadError
from situate.files import archives
from tests.readers.traces import KERNELS, chrome_trace

TRACE = chrome_trace(*KERNELS)


def tar(format: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=format) as file:
        member = tarfile.TarInfo("trace.json")
        member.size = len(TRACE)
        file.addfile(member, io.BytesIO(TRACE))
    return packed.getvalue()


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("trace.json", TRACE)
    return packed.getvalue()


V7 = tar(tarfile.USTAR_FORMAT).replace(b"ustar\x0000", bytes(8), 1)
"""A header without the word `ustar`, which the first tar did not write; its checksum is of other
bytes, so it is made to fit."""


def with_checksum(header: bytes) -> bytes:
    total = 256 + sum(header[:148]) + sum(header[156:512])
    return header[:148] + b"%06o\x00 " % total + header[156:]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (zipped(), r"is a zip archive: unpack it \(unzip FILE\)"),
        (tar(tarfile.USTAR_FORMAT), r"is a tar archive: unpack it \(tar -xf FILE\)"),
        (tar(tarfile.GNU_FORMAT), "is a tar archive"),
        (tar(tarfile.PAX_FORMAT), "is a tar archive"),
        (with_checksum(V7), "is a tar archive"),
        (gzip.compress(tar(tarfile.GNU_FORMAT)), r"is a tar archive: unpack it \(tar -xf FILE\)"),
        (gzip.compress(zipped()), "is a zip archive"),
        (bz2.compress(TRACE), r"is compressed by bzip2: unpack it first \(bzip2 -dk FILE\)"),
        (lzma.compress(TRACE), "is compressed by xz"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "is a 7z archive"),
        (b"\x28\xb5\x2f\xfd\x04", "is compressed by zstd"),
    ],
)
def test_an_archive_is_named_whatever_its_name(tmp_path, data, said):
    path = tmp_path / "model.json"
    path.write_bytes(data)
    with pytest.raises(ReadError, match=said):
        situate.read(path)
    with pytest.raises(ReadError, match=said):
        situate.read(path, format="onnx")


def test_plans_and_clusters_and_costs_that_are_archives_are_named_too(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(zipped())
    for read in (situate.Plan.read, situate.Cluster.read, situate.Costs.read):
        with pytest.raises(situate.SituateError, match=r"plan.json.*is a zip archive"):
            read(path)


def test_what_is_no_archive_is_let_through():
    for head in (b"", b"{", b"\x08\x07\x12\x04", bytes(512), TRACE[: archives.HEAD]):
        archives.refuse(head)
