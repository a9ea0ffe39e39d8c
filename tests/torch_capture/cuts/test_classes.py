"""Classes of letters: what is cut together, and its name."""

from __future__ import annotations

from functools import cache

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture import trace_step  # noqa: E402
from situate.torch_capture.cuts.classes import LetterClass, classes  # noqa: E402
from tests.torch_capture.cuts.networks import convolutions, decoder, perceptron  # noqa: E402


@cache
def of(build) -> list[LetterClass]:
    return classes(trace_step(build, "sgd", "network").trace)


def named(build) -> set[tuple[str, str, int]]:
    return {
        (letter_class.kind, letter_class.module, letter_class.units) for letter_class in of(build)
    }


# A transformer has heads and features in each layer, and a vocabulary, a sequence and a batch.
def test_a_decoder_has_the_dimensions_that_people_cut() -> None:
    assert named(decoder) >= {
        ("heads", "layers.0", 4),
        ("heads", "layers.1", 4),
        ("features", "layers.0", 24),
        ("features", "layers.1", 24),
        ("vocabulary", "embedding", 24),
        ("sequence", "", 8),
        ("batch", "", 2),
        ("hidden", "", 16),
    }


def test_copies_of_parameters_have_the_modules_and_kinds_of_the_first() -> None:
    from situate.data.slices import Slices

    step = trace_step(decoder, "sgd", "network", Slices((1, 1), replicas=(1, 1)))
    kinds = {(one.kind, one.module, one.units) for one in classes(step.trace)}
    assert {("hidden", "", 16), ("features", "layers.1", 24), ("heads", "layers.0", 4)} <= kinds


def test_the_heads_of_a_fused_weight_are_cut_in_three_ranges() -> None:
    (heads, *_) = (letter_class for letter_class in of(decoder) if letter_class.kind == "heads")
    fused = {(dim, outer) for (node, _), dim, outer in heads.dimensions if "primals" in node.name}
    assert {(0, 3), (1, 1)} <= fused


def test_learnt_positions_are_no_heads() -> None:
    """Positions have parameters, and meet a product and a softmax of the attention as heads do."""

    class Positions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = torch.nn.Parameter(torch.empty(6, 8))
            self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

        def forward(self, x):
            own = self.qkv(x + self.places).view(2, 6, 3, 4, 2).permute(2, 0, 3, 1, 4)
            q, k, v = (part.reshape(8, 6, 2) for part in own)
            y = (q.bmm(k.transpose(1, 2)).softmax(-1).bmm(v)).view(2, 4, 6, 2)
            return self.out(y.transpose(1, 2).reshape(2, 6, 8))

    def build():
        return Positions(), (torch.empty(2, 6, 8),), lambda m, x: m(x).square().mean()

    kinds = {one.units: one.kind for one in of(build)}
    assert kinds[4] == "heads"
    assert kinds[6] not in ("heads", "sequence")


def test_heads_are_a_class_within_the_samples_of_a_batch_of_products() -> None:
    """Attention with dropout has no operator of its own: it multiplies samples x heads at once."""
    assert named(lambda: decoder(attention_dropout=0.1)) >= {
        ("heads", "layers.0", 4),
        ("heads", "layers.1", 4),
        ("batch", "", 2),
    }


def test_a_perceptron_has_a_class_for_each_hidden_layer() -> None:
    assert [
        letter_class.units for letter_class in of(perceptron) if letter_class.kind == "features"
    ] == [12, 12]


def test_channels_of_convolutions_are_classes() -> None:
    channels = [
        letter_class.units for letter_class in of(convolutions) if letter_class.kind == "channels"
    ]
    assert channels == [4, 4]


def test_forward_backward_and_update_are_one_class() -> None:
    (features, *_) = (
        letter_class for letter_class in of(decoder) if letter_class.kind == "features"
    )
    passes = {node.meta.get("partitioner_tag") for node in features.members}
    assert passes == {"is_forward", "is_backward"}
