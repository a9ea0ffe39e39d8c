"""Labels that a mean of cross entropy may leave out."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from tests.torch_capture.slices.steps import captured  # noqa: E402


class Tagger(nn.Module):
    """Scores for each token."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(64, 6), nn.Linear(6, 64)

    def forward(self, ids):
        return self.head(self.embed(ids))


def label_warnings(loss, *more, **how):
    warnings = captured(loss, *more, **how).warnings
    return [text for text in warnings if " may leave out labels, " in text]


def of_tokens(model, x, y, ids, labels):
    return F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())


def of_samples(model, x, y, labels):
    return F.cross_entropy(model(x), labels)


def padded():
    ids = torch.randint(3, 64, (8, 5))
    labels = ids.clone()
    labels[:2, 2:] = -100
    return ids, labels


# A mean that may leave labels out differs from the batch's, so a warning must appear.
def test_labels_of_padded_tokens_are_warned_of():
    (text,) = label_warnings(of_tokens, *padded(), model=Tagger())
    assert text.startswith("slices: aten.nll_loss_forward may leave out labels, ")
    assert "(an op of loss" in text


def test_labels_of_tokens_may_be_padded_in_another_batch():
    ids = torch.randint(3, 64, (8, 5))
    assert len(label_warnings(of_tokens, ids, ids.clone(), model=Tagger())) == 1


def test_one_label_a_sample_is_not_spoken_of():
    assert label_warnings(of_samples, torch.arange(8) % 3) == []


def test_one_label_a_sample_is_warned_of_where_one_is_left_out():
    labels = torch.arange(8) % 3
    labels[2] = -100
    assert len(label_warnings(of_samples, labels)) == 1


def test_a_class_that_is_left_out_is_warned_of():
    def without_two(model, x, y, labels):
        return F.cross_entropy(model(x), labels, ignore_index=2)

    assert len(label_warnings(without_two, torch.arange(8) % 3)) == 1
    assert len(label_warnings(without_two, torch.arange(8) % 2)) == 1


# Labels that cannot be the one that is left out need no warning.
def test_labels_that_are_rows_of_a_table_are_not_negative():
    def shifted(model, x, y, ids):
        return F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    assert label_warnings(shifted, torch.randint(64, (8, 5)), model=Tagger()) == []


def test_labels_that_are_computed_are_not_negative_either():
    assert label_warnings(lambda m, x, y: F.cross_entropy(m(x), y.argmax(1))) == []


def test_a_sum_over_labels_is_not_spoken_of():
    def summed(model, x, y, ids, labels):
        scores = model(ids).flatten(0, 1)
        return F.cross_entropy(scores, labels.flatten(), reduction="sum") / 34

    assert label_warnings(summed, *padded(), model=Tagger()) == []
