"""The source of a device: names live no longer than needed, and no value is overwritten too
early."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.runtime.programs.placed import PlacedProgram, place  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.programs.source import DeviceSource  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import (  # noqa: E402
    DEVICES,
    assert_same,
    cut,
    optimizer_snapshot,
    program,
    state,
)

CASES = [(name, devices) for name in MODELS for devices in (1, 3)]


def placed_step(name: str, devices: int) -> PlacedProgram:
    return cut(program(name, "adam"), devices)


def names_in(line: str) -> set[str]:
    """Local names."""
    source_text = {node.id for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)}
    return {name for name in source_text if re.fullmatch(r"v\d+|_", name)}


# Properties of the text, on several models and placements.
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(("name", "devices"), CASES)
def test_a_local_is_deleted_right_after_its_last_use(name: str, devices: int, timed: bool) -> None:
    for source in placed_step(name, devices).sources:
        _, _, body = source.text(timed).partition("def step():\n")
        lines = [line.strip() for line in body.splitlines()]
        alive: set[str] = set()
        last: set[str] = set()
        for line in lines:
            if line.startswith("del "):
                assert names_in(line) <= alive & last
                alive -= names_in(line)
            else:
                last = names_in(line)
                outputs = names_in(line.partition(" = ")[0]) if " = " in line else set()
                assert names_in(line) - outputs <= alive
                alive |= outputs
        assert alive == set()


@pytest.mark.parametrize(("name", "devices"), CASES)
def test_a_tensor_is_taken_once_and_sent_once(name: str, devices: int) -> None:
    source_text = placed_step(name, devices)
    texts = [source.text(timed=False) for source in source_text.sources]
    for k in range(len(source_text.names.channels)):
        takes = [text.count(f"take{k}()") for text in texts]
        assert max(takes) == 1
        assert sum(text.count(f"send{k}(") + text.count(f"post{k}()") for text in texts) == 1


@pytest.mark.parametrize(("name", "devices"), CASES)
def test_every_op_is_timed_where_it_is_placed(name: str, devices: int) -> None:
    source_text = placed_step(name, devices)
    began = [
        line.strip().partition(" ")[0]
        for source in source_text.sources
        for line in source.text(timed=True).splitlines()
        if line.strip().startswith("began[")
    ]
    ops = range(len(source_text.program.graph.ops))
    assert sorted(began) == sorted(f"began[{op}]" for op in ops)


def test_every_parameter_is_updated_once() -> None:
    source_text = placed_step("tied", 3)
    text = "".join(source.text(timed=False) for source in source_text.sources)
    updated = [
        k for path, k in source_text.names.state.items() if path in source_text.program.gradients
    ]
    assert len(updated) == 3
    assert all(text.count(f"update{k}(") == 1 for k in updated)


def test_views_of_state_are_made_once_and_for_all() -> None:
    once, _, step = placed_step("towers", 1).sources[0].text(timed=False).partition("def step():\n")
    views = re.findall(r"^(w\d+) = f\d+\(p\d+\)$", once, re.MULTILINE)
    assert views
    assert all(view in step and f"{view} =" not in step for view in views)


def test_arguments_that_are_no_literals_are_constants() -> None:
    source_text = placed_step("odd", 1)
    values = [value for _, value in source_text.names.constants.values()]
    assert float("-inf") in values
    assert "inf" not in source_text.sources[0].text(timed=False)


OPS: list[Callable[..., Tensor]] = [
    operator.add,
    operator.mul,
    operator.sub,
    lambda a, b: a + b.sum(0),
    lambda a, b: (a.view(2, 2, 3) * 2).view(4, 3) - b,
    lambda a, b: torch.tanh(a.t()).t() + b,
    lambda a, b: a.add_(b) * 1.0,
    lambda a, b: torch.cat([a[:2], b[2:]]),
    lambda a, b: torch.relu(a) / (1.0 + b * b),
]


class Random(nn.Module):
    """Ops at random, some of whose results are read again."""

    def __init__(self, ops: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 12).view(4, 3))
        self.register_buffer("held", torch.full((4, 3), 0.5))
        self.ops = ops

    def forward(self, x: Tensor) -> Tensor:
        values = [x * 1.0, self.weight * 1.0, self.held * self.weight]
        for op, i, j in self.ops:
            one, other = (values[k % len(values)] for k in (i, j))
            values.append(OPS[op](one if op != 6 else one.clone(), other))
        return sum((value * value).mean() for value in values[-3:]) + self.weight.mean()


def never_over(self: DeviceSource, node: Any) -> Any:
    """No op writes over an argument."""
    return iter(())


# Results written over arguments or into channels.
@settings(max_examples=8)
@given(
    st.lists(
        st.tuples(st.integers(0, len(OPS) - 1), st.integers(0, 9), st.integers(0, 9)),
        min_size=3,
        max_size=8,
    )
)
def test_overwriting_changes_no_result(ops: list[tuple[int, int, int]]) -> None:
    x = torch.linspace(-2, 2, 12).view(4, 3)
    source_text = []
    for over in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not over:
                patch.setattr(DeviceSource, "_in_place", never_over)
            model = Random(ops)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            captured = capture_program(model, (x,), None, optimizer="adam")
            step = PlacedStep(cut(captured, 1), model, optimizer, DEVICES)
            losses = [step(x) for _ in range(2)]
            source_text.append(
                {
                    **state(model),
                    **optimizer_snapshot(model, optimizer),
                    "losses": torch.stack(losses),
                }
            )
            assert torch.equal(x, torch.linspace(-2, 2, 12).view(4, 3))
    assert_same(*source_text)


def test_some_results_are_written_over_an_argument() -> None:
    source_text = placed_step("unrolled", 1)
    assert any(name.partition(".")[0].endswith("_") for name in source_text.names.kernels)


class Pair(nn.Module):
    """One product that only the other device reads, and one that both do."""

    def forward(self, x: Tensor) -> Tensor:
        there, both = x @ x, x + 1.0
        return (there * both).sum() + both.sin().sum()


def test_a_tensor_read_elsewhere_is_computed_in_its_channel() -> None:
    source_text = capture_program(Pair(), (torch.ones(2, 2),), None, training=False)
    names = [op.name for op in source_text.graph.ops]
    placement = np.ones(len(names), np.int32)
    placement[[source_text.graph.ops[i].kind == "input" for i in range(len(names))]] = 0
    placement[[names.index(name) for name in ("mm", "add", "sin")]] = 0
    source = place(source_text, placement, range(len(names)), 2).sources[0]
    direct, copied = source.text(timed=False), source.text(timed=False, direct=False)
    assert len(re.findall(r"out=s\d", direct)) == 2  # the product and the sines
    assert (direct.count("post"), direct.count("send")) == (2, 1)
    assert (copied.count("post"), copied.count("send"), copied.count("out=")) == (0, 3, 0)


class Sent(nn.Module):
    """A tensor that both devices read, and one writes over."""

    def forward(self, x: Tensor) -> Tensor:
        both = x + 1.0
        return (x * both).sum() + both.sin().cos().sum()


@pytest.mark.parametrize("direct", [True, False])
def test_a_departing_tensor_is_not_overwritten(direct: bool) -> None:
    source_text = capture_program(Sent(), (torch.ones(2, 2),), None, training=False)
    names = [op.name for op in source_text.graph.ops]
    placement = np.ones(len(names), np.int32)
    placement[[names.index(name) for name in ("add", "sin", "cos")]] = 0
    placed_step = place(source_text, placement, range(len(names)), 2)
    text = placed_step.sources[0].text(timed=False, direct=direct)
    over = placed_step.names.kernels.get("aten::sin_")
    assert (f"f{over}(" in text) == direct
