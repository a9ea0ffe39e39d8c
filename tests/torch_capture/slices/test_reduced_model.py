"""Small forms of models, with numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402

from situate.torch_capture.build import build_fake, from_real  # noqa: E402
from situate.torch_capture.slices.reduced_model import (  # noqa: E402
    MAX_NUMBERS,
    SHORT_TABLE,
    SmallForm,
    few_layers,
    numbers,
    real,
    small_forms,
)


class Tied(nn.Module):
    """A table that is read at both ends, a number that is held apart, and a count."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(16, 4), nn.Linear(4, 16, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("count", torch.tensor(3))
        self.scales = [torch.tensor([0.5, 2.0])]

    def forward(self, x):
        return self.head(self.embed(x)).mean()


def equal_layers():
    return nn.Sequential(
        nn.Linear(4, 8), *(nn.Linear(8, 8) for _ in range(5)), nn.ReLU(), nn.Linear(8, 8)
    )


# A small form keeps two of equal layers, and restores the model afterwards.
def test_two_of_equal_layers_in_a_row_are_kept():
    model = equal_layers()
    first, second, third, *_, relu, last = model
    with few_layers(model, 2):
        assert [*model] == [first, second, third, relu, last]
        assert model(torch.ones(2, 4)).shape == (2, 8)


def test_layers_in_lists_inside_of_layers_are_left_out_too():
    model = nn.ModuleList(nn.ModuleDict({"inner": equal_layers()}) for _ in range(3))
    with few_layers(model, 2):
        assert [len(layer["inner"]) for layer in model] == [5, 5]


def test_layers_that_differ_are_all_kept():
    model = nn.Sequential(nn.Dropout(0.1), nn.Dropout(0.2), nn.Linear(4, 4), nn.Linear(4, 5))
    with few_layers(model, 2):
        assert len(model) == 4


def test_all_layers_are_back_in_their_order_also_after_an_error():
    model = equal_layers()
    model.add_module("named", nn.ReLU())
    before = [*model.named_modules()]
    with pytest.raises(KeyboardInterrupt), few_layers(model, 2):
        raise KeyboardInterrupt
    assert [*model.named_modules()] == before


# The real copy has numbers, and never changes the original.
def test_a_model_without_values_becomes_one_with_random_numbers_and_its_ties():
    what = build_fake(lambda: (Tied(), (torch.zeros(2, 3, dtype=torch.int64),), None), "model")
    model = real(what, SmallForm(2))
    tensors = [model.embed.weight, model.count, *model.scales]
    assert not any(isinstance(tensor, FakeTensor) for tensor in tensors)
    assert model.head.weight is model.embed.weight
    assert model.embed.weight.requires_grad
    assert isinstance(what.model.embed.weight, FakeTensor)
    model(torch.zeros(2, 3, dtype=torch.int64)).backward()


def test_a_model_that_exists_keeps_its_numbers_and_is_not_written_to():
    theirs = Tied()
    ours = real(
        from_real(theirs, (torch.zeros(2, 3, dtype=torch.int64),), None, "model"), SmallForm(2)
    )
    assert torch.equal(ours.embed.weight, theirs.embed.weight)
    assert ours.count == 3
    assert ours.scales[0].tolist() == [0.5, 2.0]
    ours.embed.weight.data.zero_()
    assert torch.any(theirs.embed.weight)


def test_numbers_are_those_of_parameters_and_buffers():
    assert numbers(Tied()) == SmallForm(2).numbers(Tied()) == 16 * 4 + 1
    assert SmallForm(2).numbers(equal_layers()) == 4 * 8 + 8 + 3 * (8 * 8 + 8)


# Long tables are shortened if the model would otherwise be too large.
class Language(nn.Module):
    """A vocabulary, equal layers and an output for each token."""

    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.head(self.layers(self.embed(x)))


def forms(vocabulary, width, layers):
    with torch.device("meta"):
        return small_forms(Language(vocabulary, width, layers))


# Rows of long tables go first: such a form is tried at least cost.
def test_a_model_becomes_as_small_as_it_has_to():
    short = frozenset({100_000})
    assert forms(1000, 64, 8) == [SmallForm(2), SmallForm(1)]
    assert forms(100_000, 64, 8) == [SmallForm(2, short), SmallForm(2), SmallForm(1, short)]
    assert forms(100_000, 4000, 8) == [SmallForm(2, short), SmallForm(1, short)]
    assert forms(100_000, 12_000, 8) == [SmallForm(1, short)]
    assert forms(1000, 20_000, 8) == []
    assert 12_000**2 <= MAX_NUMBERS < 2 * 12_000**2


def test_a_short_table_is_read_within_its_rows_and_its_output_has_as_many():
    form = SmallForm(2, frozenset({9000}))
    tokens = torch.tensor([[3, 8999, 1024]])
    build = lambda: (Language(9000, 8, 1), (tokens,), None)  # noqa: E731
    model = real(build_fake(build, "model"), form)
    assert model.embed.weight.shape == (SHORT_TABLE, 8)
    assert model(form.indices(tokens)).shape == (1, 3, SHORT_TABLE)


def test_indices_below_zero_mean_what_they_meant():
    labels = torch.tensor([-100, 5, 5000])
    assert SmallForm(2, frozenset({9000})).indices(labels).tolist() == [-100, 5, 5000 % SHORT_TABLE]
    assert SmallForm(2).indices(labels) is labels
    assert SmallForm(2, frozenset({9000})).indices(torch.tensor([True])).tolist() == [True]
