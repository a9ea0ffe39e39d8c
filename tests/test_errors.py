"""Errors: they survive a worker process, name the nearest name, and count in words."""

from __future__ import annotations

import copy
import difflib

import pytest

from situate.errors import MissingExtra, nearest, plural


def test_a_missing_extra_comes_out_of_a_worker_process_as_it_is() -> None:
    """It is copied as pickle does; one that cannot be takes the pool with it, which then waits."""
    missing = MissingExtra("pymetis", "metis")
    assert str(copy.copy(missing)) == str(missing)
    assert "pip install 'situate[metis]'" in str(missing)


def test_of_no_names_none_is_nearest() -> None:
    assert nearest("a", ()) == ""


@pytest.mark.parametrize("misspelt", ["op7000.bais", "op7000.biass", "0p7000.bias"])
def test_the_nearest_of_many_names_is_found_without_comparing_all(
    misspelt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    match = difflib.get_close_matches

    def counted(name: str, names: list[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(names))
        return match(name, names, n, cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    names = [f"op{i}.{part}" for i in range(6990, 7010) for part in ("bias", "weight")]
    names += [f"other{i}.{'x' * (i % 50)}" for i in range(20_000)]
    assert nearest(misspelt, names) == "; did you mean 'op7000.bias'?"
    assert compared[0] < 1000


def test_one_is_singular_and_thousands_have_commas() -> None:
    assert (plural(1, "op"), plural(2000, "op")) == ("1 op", "2,000 ops")
