"""Samples survive their bytes, and edits of the file are noticed."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from situate.errors import ReadError
from situate.evaluators.measurements import Measurements
from situate.study.file import StudyFile
from situate.study.samples import Packing
from situate.study.study import Study
from tests.study.studies import BATCH, HEADER, batch, edited, make_study, record, refused


# Placements as bytes.
@pytest.mark.parametrize("devices", [1, 2, 5, 256, 257, 60_000])
def test_unpacking_reverses_packing(devices: int) -> None:
    placements = np.random.default_rng(0).integers(0, devices, (3, 50)).astype(np.int32)
    placements[0, 0] = devices - 1
    packing = Packing(50, devices)
    for placement, packed in zip(placements, packing.pack(placements), strict=True):
        assert packing.unpack(packed).dtype == np.int32
        assert np.array_equal(packing.unpack(packed), placement)


def test_groups_that_lie_together_take_few_bytes() -> None:
    placements = np.repeat(np.random.default_rng(0).integers(0, 4, (1, 30)), 1000, axis=1)
    assert len(Packing(30_000, 4).pack(placements.astype(np.int32))[0]) < 1000


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no zlib",
        zlib.compress(bytes(9)),
        zlib.compress(bytes(11)),
        zlib.compress(bytes(10))[:-6],
        zlib.compress(bytes(10**8)),
        zlib.compress(bytes([3] * 10)),
    ],
    ids=["nothing", "other", "short", "long", "cut", "bomb", "device"],
)
def test_bytes_of_no_placement_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Packing(10, 3).unpack(packed)


def test_a_header_without_numbers_has_no_packing() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Packing.of({"ops": "ten", "devices": "2"})


@pytest.mark.parametrize(("ops", "devices"), [(1, 1), (2**31 - 1, 2**16)])
def test_a_header_says_how_many_ops_and_devices_there_are(ops: int, devices: int) -> None:
    assert Packing.of({"ops": str(ops), "devices": str(devices)}) == Packing(ops, devices)


@pytest.mark.parametrize(("ops", "devices"), [(0, 1), (1, 0), (-1, 1), (2**31, 1), (1, 2**16 + 1)])
def test_a_header_of_what_no_study_has_has_no_packing(ops: int, devices: int) -> None:
    with pytest.raises(ValueError, match=f"no study has {ops} ops on {devices} devices"):
        Packing.of({"ops": str(ops), "devices": str(devices)})


ROOT = Path(__file__).parents[2]


EDITS = [
    "UPDATE samples SET seconds = 1 WHERE number = 5",
    "UPDATE samples SET seconds = 'fast' WHERE number = 5",
    "UPDATE samples SET outcome = 'crash' WHERE number = 5",
    "UPDATE samples SET outcome = x'ff' WHERE number = 5",
    "UPDATE samples SET batch = 5 WHERE number = 5",
    "UPDATE samples SET placement = 'x' WHERE number = 5",
    "UPDATE samples SET placement = (SELECT placement FROM samples) WHERE number = 5",
    "UPDATE samples SET checksum = 5 WHERE number = 5",
    "UPDATE samples SET number = 1000 WHERE number = 5",
    "DELETE FROM samples WHERE number = 5",
    "DELETE FROM samples WHERE number >= 5",
]


# Rows edited by SQL.
@pytest.mark.parametrize("statement", EDITS)
def test_an_edited_sample_is_noticed(statement: str, tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, statement)
    refused("a: sample 5 of the study is damaged; restore", path, ReadError)


@pytest.mark.parametrize("statement", EDITS)
def test_an_edited_final_is_noticed(statement: str, tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    with StudyFile(path, HEADER) as study:
        record(study, 0, "finals")
        record(study, 4, "finals")
    edited(path, statement.replace("samples", "finals"))
    refused("a: sample (5|1000) of the study is damaged; restore", path, ReadError)


# Controllers on the wall clock measure several batches at once. A search that is killed then leaves
# a study in which samples of an earlier batch are missing.
def test_samples_of_several_batches_may_be_missing_by_the_wall_clock(tmp_path: Path) -> None:
    path, header = tmp_path / "a", HEADER | {"controllers": "2, wall, at most 3 updates stale"}
    placements, measured = batch(0)
    kept = Measurements(measured.seconds[:-1], measured.outcome[:-1])
    with StudyFile(path, header) as study:
        study.record(np.arange(BATCH - 1), placements[:-1], kept, 0)
        record(study, BATCH)
    assert len(Study.read(path)) == BATCH - 1
    with StudyFile(path, header) as study:
        rows, _ = study.stored_samples(BATCH, batch(BATCH)[0])
        assert len(rows) == BATCH
    edited(path, "DELETE FROM samples WHERE number = 1")
    with pytest.raises(ReadError, match="a: sample 1 of the study is damaged"):
        Study.read(path)


def test_a_sample_too_many_is_noticed(tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(
        path,
        "INSERT INTO samples SELECT 24, 24, seconds, outcome, placement, NULL, 0 FROM samples "
        "LIMIT 1",
    )
    refused("a: sample 24 of the study is damaged", path, ReadError)


def test_a_sample_of_another_study_is_noticed(tmp_path: Path) -> None:
    """Its checksum is right; the count is not."""
    path, longer = make_study(tmp_path / "a"), make_study(tmp_path / "b", batches=7)
    edited(
        path,
        f"ATTACH '{longer}' AS longer",
        then="INSERT INTO samples SELECT * FROM longer.samples WHERE number = 24",
    )
    refused("the study, which has 1 samples too many, is damaged", path, ReadError)


@pytest.mark.parametrize("statement", ["UPDATE counts SET rows = rows - 1", "DELETE FROM counts"])
def test_an_edited_count_is_noticed(statement: str, tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, f"{statement} WHERE name = 'samples'")
    refused("the count of samples in the study is damaged", path, ReadError)
