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

ALONE = [
    *(("decoder", kind) for kind in ("heads", "features", "vocabulary", "sequence")),
    *(("decoder", kind) for kind in ("batch", "hidden", "others")),
    ("slicing", "heads"),
    ("dropping in attention", "heads"),
    ("dropping in attention", "sequence"),
    ("perceptron", "batch"),
    ("convolutions", "channels"),
    ("convolutions", "batch"),
    ("recurrent", "features"),
    *(("routing", kind) for kind in ("experts", "batch", "others")),
]
"""Each kind on the simplest network that has it, and on those where other rules cut it."""

TOGETHER = {
    "decoder": ("heads", "features", "vocabulary", "sequence", "batch", "hidden", "others"),
    "slicing": ("heads", "features", "vocabulary", "sequence", "batch", "hidden", "others"),
    "dropping": ("heads", "features", "vocabulary", "sequence", "batch", "hidden", "others"),
    "dropping in attention": ("heads", "features", "sequence", "batch", "hidden", "others"),
    "perceptron": ("features", "batch", "others"),
    "convolutions": ("channels", "batch", "vocabulary"),
    "recurrent": ("features", "vocabulary", "batch", "others"),
    "routing": ("experts", "batch", "others"),
}


def difference(build, *texts, **options):
    model, inputs, loss = build()
    name, cuts = f"tests.{build.__name__}", parse_cuts(texts)
    program = capture_program(model, inputs, loss, name=name, cuts=cuts, **options)
    return compare_with_whole_ops(model, inputs, loss, program, threads=1)


# Each kind alone, and each network along all of its kinds at once, in double precision.
@pytest.mark.parametrize(
    ("name", "kinds"), [*((name, (kind,)) for name, kind in ALONE), *TOGETHER.items()]
)
def test_parts_compute_what_whole_ops_compute(name: str, kinds: tuple[str, ...]) -> None:
    gap = difference(NETWORKS[name], *(f"{kind}=2" for kind in kinds))
    assert gap.is_rounding
    assert gap.tolerance <= 1e-6


def test_each_network_is_cut() -> None:
    assert TOGETHER.keys() == NETWORKS.keys()


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
