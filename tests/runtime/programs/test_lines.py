"""No later line reads an overwritten value, and names are deleted after their last use."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from situate.runtime.programs.lines import (
    OUTSIDE_MEMORY,
    ExecutedLine,
    Line,
    local_names,
    straight_line,
)

Array = NDArray[np.float64]
Call = tuple[str, int, int]


def add_over(first: Array, second: Array) -> Array:
    """The sum, in the memory of the first, number by number as a kernel makes it."""
    for i in range(len(first)):
        first[i] += second[i]
    return first


NAMES: dict[str, Callable[..., Array]] = {
    "f0": lambda first, second: first + second,
    "f1": add_over,
    "f2": lambda source: source[::-1],
}


def flat(lines: list[ExecutedLine]) -> list[str]:
    """Their texts."""
    return [text for line in lines for text in line.texts(laid_out=False)]


def program(calls: list[Call]) -> tuple[list[Line], dict[str, str]]:
    """Lines of sums, views of earlier values, and received values; and the memory of each name."""
    lines, memory = [Line("v0 = p0")], {"v0": OUTSIDE_MEMORY}
    for name, (what, i, j) in ((f"v{k}", call) for k, call in enumerate(calls, start=1)):
        one, other = f"v{i % len(memory)}", f"v{j % len(memory)}"
        if what == "view":
            lines.append(Line(f"{name} = f2({one})"))
            memory[name] = memory[one]
        elif what == "take":
            lines.append(Line(f"{name} = x0"))
            memory[name] = OUTSIDE_MEMORY
        else:
            over = [(a, f"{name} = f1({a}, {b})") for a, b in ((one, other), (other, one))]
            lines.append(Line(f"{name} = f0({one}, {other})", tuple(over)))
            memory[name] = name
    lines += [Line(f"done({name})") for name in list(memory)[-2:]]
    return lines, memory


def run(lines: list[str]) -> tuple[list[Array], list[Array], set[str]]:
    """The results of the lines, the memory that they must not overwrite, and their remaining
    names."""
    values: list[Array] = []
    outside = [np.arange(3.0), np.ones(3)]
    names = {**NAMES, "p0": outside[0], "x0": outside[1], "done": lambda x: values.append(x.copy())}
    unread: dict[str, object] = {}
    exec("\n".join(lines), names, unread)
    return values, outside, set(unread)


PLACES = st.integers(0, 4)


# Random straight-line programs, with and without overwriting.
@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.sampled_from(["view", "take", "sum", "sum"]), PLACES, PLACES),
        min_size=1,
        max_size=12,
    )
)
def test_overwriting_changes_no_result(calls: list[Call]) -> None:
    lines, memory = program(calls)
    expected, _, _ = run([line.text for line in lines])
    executed_lines, (state, given_), unread = run(
        flat(straight_line(lines, memory, {OUTSIDE_MEMORY}))
    )
    assert all(np.array_equal(a, b) for a, b in zip(executed_lines, expected, strict=True))
    assert np.array_equal(state, np.arange(3.0))
    assert np.array_equal(given_, np.ones(3))
    assert unread == set()


# Single rules of overwriting.
def test_a_value_without_later_reads_is_overwritten() -> None:
    lines, memory = program([("sum", 0, 0), ("sum", 1, 1), ("sum", 1, 2), ("sum", 3, 0)])
    texts = flat(straight_line(lines, memory, {OUTSIDE_MEMORY}))
    assert "v2 = f0(v1, v1)" in texts
    assert "v3 = f1(v1, v2)" in texts


def test_a_view_that_is_read_later_keeps_its_source() -> None:
    lines, memory = program([("sum", 0, 0), ("view", 1, 0), ("sum", 1, 0), ("sum", 2, 3)])
    assert "v3 = f0(v1, v0)" in flat(straight_line(lines, memory, {OUTSIDE_MEMORY}))


def test_memory_is_not_overwritten_while_the_line_reads_another_view() -> None:
    lines, memory = program([("sum", 0, 0), ("view", 1, 0), ("sum", 1, 2)])
    assert "v3 = f0(v1, v2)" in flat(straight_line(lines, memory, {OUTSIDE_MEMORY}))


def test_memory_from_outside_is_never_overwritten() -> None:
    lines, memory = program([("sum", 0, 0)])
    assert "v1 = f0(v0, v0)" in flat(straight_line(lines, memory, {OUTSIDE_MEMORY}))
    memory["v0"] = "v0"
    assert "v1 = f0(v0, v0)" in flat(straight_line(lines, memory, {OUTSIDE_MEMORY, "v0"}))


class Counting(dict[str, str]):
    """Counts how often anything is looked up."""

    count = 0

    def __getitem__(self, key: str) -> str:
        self.count += 1
        return super().__getitem__(key)


def test_the_time_for_a_line_does_not_grow_with_the_lines() -> None:
    """A step of a large network has a hundred thousand."""
    lines, memory = program([("sum", k, k // 2) for k in range(1000)])
    counting = Counting(memory)
    straight_line(lines, counting, {OUTSIDE_MEMORY})
    assert counting.count < 8 * len(lines)


# The text of the lines.
def test_a_name_is_deleted_at_once_after_its_last_use() -> None:
    lines = [Line("v0 = f0()"), Line("v1 = f0(v0)"), Line("p3 = f0(v1, v11)"), Line("f0(v1)")]
    texts = flat(straight_line(lines, {f"v{k}": f"v{k}" for k in (0, 1, 11)}, set()))
    assert texts == [
        "v0 = f0()",
        "v1 = f0(v0)",
        "del v0",
        "p3 = f0(v1, v11)",
        "del v11",
        "f0(v1)",
        "del v1",
    ]
    ast.parse("\n".join(texts))


def test_local_names() -> None:
    assert local_names("v12 = f3(v1, [p2, v0], v=x1)") == ["v12", "v1", "v0"]


def test_results_in_a_channel_overwrite_nothing() -> None:
    memory = {"v0": "v0", "v1": "v1"}
    assigned_names = Line("v1 = f1(v0)", (("v0", "v1 = f2(v0)"),), direct="v1 = f3(v0, out=s0)")
    sent = Line("send0(v1)", direct="post0()")
    lines = [Line("v0 = f0()"), assigned_names, sent]
    _, executed, post = straight_line(lines, memory, {OUTSIDE_MEMORY})
    assert executed.texts(laid_out=False) == ["v1 = f3(v0, out=s0)", "del v0, v1"]
    assert (executed.direct, executed.over, post.text) == (True, None, "post0()")
    _, executed, send = straight_line(lines, memory, {OUTSIDE_MEMORY}, direct=False)
    assert executed.texts(laid_out=False) == ["v1 = f2(v0)", "del v0"]
    assert (executed.direct, executed.over, send.text) == (False, "v0", "send0(v1)")
