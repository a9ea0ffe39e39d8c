"""Scotch's program is run as it is, and not taken at its word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from situate.errors import SituateError
from situate.solvers.partitioners.scotch.programs import find_mapper, static_mapping
from tests.solvers.programs import needs_scotch

PAIRS = "0\n4 4\n0 011\n1 1 9 1\n1 1 9 0\n1 1 9 3\n1 1 9 2\n"
"""Two pairs of vertices, an edge in each."""
TWO = "deco\n0 2 3\n0 1 2\n1 1 3\n1\n"
"""Two equal processors."""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script on the PATH, the only mapper there."""

    def put(script: str) -> None:
        program = tmp_path / "scotch_gmap"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return put


def _map(longest: float = 60.0) -> list[int]:
    return static_mapping(PAIRS, TWO, vertices=4, processors=2, longest=longest).tolist()


@needs_scotch
def test_scotch_keeps_pairs_together() -> None:
    a, b, c, d = _map()
    assert a == b != c == d


@needs_scotch
def test_the_same_files_give_the_same_mapping() -> None:
    rng = np.random.default_rng(0)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 200, (600, 2)) if a != b}
    edges |= {(b, a) for a, b in edges}
    rows = [[b for a, b in sorted(edges) if a == v] for v in range(200)]
    text = "".join(f"1 {len(row)} {' '.join(f'1 {b}' for b in row)}\n" for row in rows)
    graph = f"0\n200 {len(edges)}\n0 011\n{text}"
    first, second = (static_mapping(graph, TWO, 200, 2) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.bincount(first).tolist() == pytest.approx([100, 100], abs=5)


@needs_scotch
def test_what_scotch_says_is_passed_on() -> None:
    """Scotch ends with status 0 or a crash where a file is amiss."""
    with pytest.raises(SituateError, match="gmap says 'gmap: ERROR: ") as error:
        static_mapping(PAIRS, "deco 0 2", 4, 2)
    assert "archDecoArchLoad: bad input" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_program_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SituateError) as error:
        _map()
    assert str(error.value) == (
        "this needs Scotch's program 'scotch_gmap' or 'gmap', and neither is on the PATH: "
        "apt-get install scotch"
    )


def test_scotchs_own_name_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "gmap"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_mapper() == str(program)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("", "gave no mapping: Scotch 7 or newer is needed"),
        ("4 0 0 1", "gave no mapping"),
        ("4 0 zero", "gave no mapping"),
        ("4 0 99999999999999999999", "gave no mapping"),
        ("3 0 0 1 0 2 1", "did not map each of 4 vertices once"),
        ("4 0 0 1 0 2 1 2 1", "did not map each of 4 vertices once"),
        ("5 0 0 1 0 2 1 3 1", "did not map each of 4 vertices once"),
        ("4 0 0 1 0 2 1 3 2", "mapped a vertex to none of 2 processors"),
        ("4 0 0 1 0 2 1 3 -1", "mapped a vertex to none of 2 processors"),
    ],
)
def test_bad_mappings_are_refused(
    stand_in: Callable[[str], None], mapping: str, message: str
) -> None:
    stand_in(f"echo '{mapping}' > graph.map")
    with pytest.raises(SituateError, match=message):
        _map()


def test_vertices_may_come_in_any_order(stand_in: Callable[[str], None]) -> None:
    stand_in("echo '4 3 1 0 0 2 1 1 0' > graph.map")
    assert _map() == [0, 0, 1, 1]


def test_another_program_of_that_name_is_named(stand_in: Callable[[str], None]) -> None:
    stand_in("echo 'Usage: gmap [OPTIONS...] <FASTA files...>' >&2; exit 9")
    with pytest.raises(SituateError, match=r"says 'Usage: gmap .* gave no mapping: Scotch 7"):
        _map()


def test_a_mapping_that_takes_too_long_is_given_up(stand_in: Callable[[str], None]) -> None:
    stand_in("exec sleep 60")
    with pytest.raises(SituateError, match=r"scotch_gmap was stopped after 0\.1 s"):
        _map(longest=0.1)


def test_what_cannot_be_run_is_named(stand_in: Callable[[str], None], tmp_path: Path) -> None:
    stand_in("")
    (tmp_path / "scotch_gmap").write_bytes(b"\x7fELF nothing")
    with pytest.raises(SituateError, match="scotch_gmap cannot be run: "):
        _map()
