"""Steps in parts against steps of whole ops."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.data.cuts import parse_cuts  # noqa: E402
from situate.data.slices import parse  # noqa: E402
from situate.runtime.parts.whole_ops import compare_with_whole_ops  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.torch_capture.cuts import rules  # noqa: E402
from situate.torch_capture.cuts.letters import Axis, Letter, shape  # noqa: E402
from situate.torch_capture.cuts.rules import views  # noqa: E402
from tests.runtime.parts.test_loop import experts  # noqa: E402
from tests.torch_capture.cuts.networks import NETWORKS, decoder, perceptron  # noqa: E402

KINDS = ("heads", "features", "vocabulary", "sequence", "batch", "hidden", "others", "channels")


def difference(build, *texts, **options):
    model, inputs, loss = build()
    name, cuts = f"tests.{build.__name__}", parse_cuts(texts)
    program = capture_program(model, inputs, loss, name=name, cuts=cuts, **options)
    return compare_with_whole_ops(model, inputs, loss, program, threads=1)


# Each network along each of its kinds, in double precision.
@pytest.mark.parametrize("name", NETWORKS)
def test_parts_compute_what_whole_ops_compute(name) -> None:
    from situate.torch_capture import trace_step

    units = trace_step(NETWORKS[name], "sgd", f"tests.{name}").units
    kinds = [kind for kind in KINDS if any(size % 2 == 0 for size in units.get(kind, ()))]
    for texts in (*([f"{kind}=2"] for kind in kinds), [f"{kind}=2" for kind in kinds]):
        gap = difference(NETWORKS[name], *texts)
        assert gap.is_rounding, (texts, gap)
        assert gap.tolerance <= 1e-6


def test_parts_of_slices_are_compared_with_slices() -> None:
    assert difference(decoder, "heads=2", "sequence=2", slices=parse("2")).is_rounding


def test_inference_is_compared_by_its_results() -> None:
    gap = difference(decoder, "heads=2", "features=2", training=False)
    assert gap.is_rounding
    assert gap.gradient == 0


def test_experts_in_groups_compute_what_whole_experts_compute() -> None:
    pytest.importorskip("transformers")
    assert difference(experts, "heads=2", "features=2").is_rounding


# A wrong rule shows: here every part of a tanh takes the first rows.
def test_a_wrong_rule_is_noticed(monkeypatch) -> None:
    def wrong(node):
        size = shape(node)[1]
        return [Letter(size, (Axis(1),), (Axis(1),), write=_twice_the_first)]

    def _twice_the_first(writer, node, parts):
        first = writer.call(node, node.target, parts[0].args, 0)
        return [[first, first]]

    monkeypatch.setitem(rules.RULES, "tanh", wrong)
    assert not difference(perceptron, "features=2").is_rounding
    assert "tanh" not in views.RULES
