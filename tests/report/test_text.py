from __future__ import annotations

import unicodedata

import pytest

from situate.report.text import printable, tensor_name
from tests.report.handmade import HOSTILE, chain


@pytest.mark.parametrize("name", [*HOSTILE, "\x00", "\x9b31m", "\u2028", "\ud800", "\x7f\r\t"])
def test_nothing_that_steers_a_terminal_is_left(name: str) -> None:
    text = printable(name)
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in text)
    text.encode("utf-8")


def test_plain_names_stay_as_they_are() -> None:
    assert printable("layer1.0.conv2/Δ 中文") == "layer1.0.conv2/Δ 中文"


def test_control_characters_become_escapes() -> None:
    assert printable("a\x1b[31m\nb") == "a\\x1b[31m\\nb"


@pytest.mark.parametrize("width", [2, 5, 6, 11])
def test_long_names_keep_both_ends(width: int) -> None:
    text = printable("abcdefghijkl", width)
    assert len(text) == width
    assert text[0] == "a"
    assert "…" in text


def test_names_that_fit_are_not_shortened() -> None:
    assert printable("abc", 3) == "abc"


def test_tensors_are_called_by_their_name_and_control_edges_after_their_op() -> None:
    problem = chain(2)
    graph = type(problem.graph)("g", problem.graph.ops, problem.graph.tensors, control=((0, 1),))
    with_control = type(problem)(graph, problem.cluster)
    assert [tensor_name(with_control, t) for t in (0, 1)] == ["t:op0", "control:op0"]
