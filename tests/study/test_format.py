"""A study belongs to one search and one version of the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.errors import ReadError
from situate.study.file import StudyFile
from tests.study.studies import HEADER, edited, make_study, refused

ROOT = Path(__file__).parents[2]


# New files and other searches.
def test_a_file_of_no_bytes_becomes_a_study(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    make_study(tmp_path / "a")


@pytest.mark.parametrize("name", HEADER)
def test_a_study_of_another_search_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    with StudyFile(path, HEADER | {name: "99"}):
        pass
    refused(f"the study has {name} '99' and this search '{HEADER[name]}'; start", path)


def test_a_study_with_fields_of_its_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.study"
    with StudyFile(path, HEADER | {"colour": "\x1b[31m"}):
        pass
    refused(r"has colour '\\x1b\[31m' and this search None", path)


# Other databases, versions and damaged files.
@pytest.mark.parametrize("statement", ["CREATE TABLE t (x)", "PRAGMA application_id = 7"])
def test_another_programs_database_is_refused(statement: str, tmp_path: Path) -> None:
    edited(tmp_path / "a", statement)
    refused("a database of another program, not a study", tmp_path / "a", ReadError)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, "PRAGMA user_version = 6")
    refused("format 6 of a study, and this situate reads format 5", path, ReadError)


def test_an_earlier_format_is_refused(tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, "PRAGMA user_version = 2")
    refused("format 2 of a study, and this situate reads format 5; use the", path, ReadError)


@pytest.mark.parametrize("column", ["value", "name"])
@pytest.mark.parametrize("name", HEADER)
def test_an_edited_header_is_noticed(name: str, column: str, tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, f"UPDATE header SET {column} = ? WHERE name = ?", f"{name}x", name)
    refused(f"'{name}x?' in the header of the study is damaged", path, ReadError)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE samples",
        "DROP TABLE header",
        "ALTER TABLE header RENAME value TO v",
        "DELETE FROM header",
        "DELETE FROM header WHERE name = 'seed'",
        "DROP TABLE counts",
        "DELETE FROM counts",
    ],
)
def test_a_study_that_lacks_a_part_is_refused(statement: str, tmp_path: Path) -> None:
    path = make_study(tmp_path / "a")
    edited(path, statement)
    refused("the study is damaged; restore|the count of header in the study is damaged", path)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"CREATE TABLE header", b"CREA\xf8E TABLE header"), (b"KEY, value", b"K\n\xf8, value")],
)
def test_a_study_whose_tables_are_no_text_is_refused(
    old: bytes, new: bytes, tmp_path: Path
) -> None:
    path = make_study(tmp_path / "a")
    path.write_bytes(path.read_bytes().replace(old, new))
    refused("the study is damaged|not readable as a study", path, ReadError)


def test_a_study_that_lacks_pages_is_refused(tmp_path: Path) -> None:
    whole = make_study(tmp_path / "a").read_bytes()
    for size in [1, 15, 16, 99, 100, 511, 512, *range(4096, len(whole), 4096)]:
        (tmp_path / "a").write_bytes(whole[:size])
        refused("damaged|not a study", tmp_path / "a", ReadError)
