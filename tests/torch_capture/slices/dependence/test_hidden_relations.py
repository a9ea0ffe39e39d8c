"""Steps whose slices look alike and train another function must give a warning. Common steps that
train the same must give none."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.distributions import Beta, Binomial, Categorical, Dirichlet, Gamma  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from tests.torch_capture.slices.dependence.judge import (  # noqa: E402
    ROUNDING,
    Step,
    difference,
    verdict,
)


class Layer(nn.Linear):
    """A layer with parameters and buffers beside it."""

    def __init__(self):
        super().__init__(6, 6)
        self.table = nn.Parameter(torch.randn(10, 6))
        self.pair = nn.Parameter(torch.randn(2, 3))
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.register_buffer("decay", torch.tensor(0.9))
        self.register_buffer("step", torch.tensor(0))


def numbers():
    return torch.randn(8, 6), torch.randn(8, 6)


def classes():
    return torch.randn(8, 6), torch.tensor([0, 1, 1, 2, 3, 3, 3, 5])


def centred(n):
    return torch.eye(n) - 1 / n


def put_entries(m, x, y):
    z = m(x).clone()
    z[:, y] = 0.0
    return z.square().mean()


def masked(m, x, y):
    mask = torch.zeros_like(x)
    mask[:, y] = 1.0
    return (m(x) * mask).square().mean()


def count_factor(m, x, y):
    m.step.add_(1)
    return F.mse_loss(m(x), y) * torch.clamp(m.step / 1000.0, max=1.0)


def first_step(m, x, y):
    is_first = m.step == 0
    m.step.add_(1)
    return F.mse_loss(m(x), y) + torch.where(is_first, 1.0, 0.0) * m.weight.abs().sum()


def places_before(x):
    return torch.arange(len(x)) - 1


def weights(y):
    return 1 - F.one_hot(y, 6).float().mean(0)


def co_occurrence(m, y):
    pairs = (y[:, None], y[None])
    return torch.zeros(6, 6).index_put(pairs, torch.tensor(1.0), accumulate=True)


def of_two(m, x):
    losses = torch.zeros(2)
    losses[0], losses[1] = m(x).mean(), m(x).square().mean()
    return losses


class Centred(torch.autograd.Function):
    """The identity, whose gradients are centred."""

    @staticmethod
    def forward(ctx, z):
        return z.clone()

    @staticmethod
    def backward(ctx, g):
        return centred(len(g)) @ g


# No step that relates samples may pass without a warning or a refusal.
OF_NUMBERS = {
    # Constants of two dimensions that grow.
    "centred": lambda m, x, y: (centred(len(x)) @ m(x)).square().mean(),
    "cumulative": lambda m, x, y: (torch.ones(len(x), len(x)).tril() @ m(x)).square().mean(),
    "kernel": lambda m, x, y: (
        (
            (torch.arange(len(x))[None] - torch.arange(len(x))[:, None])
            .abs()
            .mul(-m.scale)
            .softmax(1)
            @ m(x)
        )
        .square()
        .mean()
    ),
    "permuted by a matrix": lambda m, x, y: F.mse_loss(
        m(x), torch.eye(len(x))[torch.randperm(len(x))] @ y
    ),
    "centred gradient": lambda m, x, y: Centred.apply(m(x)).square().mean(),
    # Places of other samples.
    "the sample before": lambda m, x, y: (m(x) * m(x)[places_before(x)]).mean(),
    "labels of the sample before": lambda m, x, y: F.mse_loss(m(x), y[places_before(x)]),
    "windows": lambda m, x, y: (
        m(x)[places_before(x)[:, None] + torch.tensor([0, 1])].prod(1).mean()
    ),
    "put before": lambda m, x, y: (m(x).index_put((places_before(x),), y) * m(x)).mean(),
    # Numbers that change with the batch.
    "a threshold": lambda m, x, y: F.mse_loss(m(x), y) + m(x).abs().mean() * (len(x) >= 8),
    "a threshold that fills": lambda m, x, y: (m(x) * torch.full_like(x, len(x) > 4)).mean(),
    "a complex number": lambda m, x, y: (m(x) * (x * complex(0, len(x))).abs().tanh()).mean(),
    "decay by samples": lambda m, x, y: (m.decay ** len(x) * m(x)).mean(),
    "root by samples": lambda m, x, y: (m(x) * x.abs() ** (1 / len(x))).mean(),
    "exponent by samples": lambda m, x, y: (m(x) * 0.5 ** (x / len(x))).mean(),
    # Casts and lookups.
    "any positive": lambda m, x, y: m(x).sum() + (y > 2).sum().bool() * m.bias.sum(),
    "rounded mean": lambda m, x, y: (
        m(x).mean() + (y.mean(0) * 10).long().float().mul(m.bias).mean()
    ),
    # Parts of shared tensors.
    "written range": lambda m, x, y: (
        m(x).tanh() * m.bias.slice_scatter(m(x).mean(0).detach()[:2], 0, 0, 2)
    ).mean(),
    "written entries": lambda m, x, y: of_two(m, x).square().sum(),
    "padded sum": lambda m, x, y: (
        (F.pad(m(x).sum(0), (1, 0), value=1.0) @ torch.ones(7)) * m.bias.mean()
    ),
    "dealt out": lambda m, x, y: (
        m(x) * m.pair.detach().view(2, 1, 3).expand(2, len(x), 3).reshape(len(x), 6)
    ).mean(),
    "renorm": lambda m, x, y: (m(x).detach().renorm(2, 1, 1.0) * m(x)).mean(),
    # Norms with statistics from elsewhere.
    "norm by a mean": lambda m, x, y: (
        F.batch_norm(m(x), m(x).detach().mean(0), torch.ones(6), training=False).square().mean()
    ),
    "norm weighed by a mean": lambda m, x, y: (
        F.batch_norm(m(x), torch.zeros(6), torch.ones(6), weight=y.mean(0), training=False)
        .square()
        .mean()
    ),
    # Counters that the loss reads.
    "a counter as a factor": count_factor,
    "the first step": first_step,
}

OF_CLASSES = {
    "frequencies": lambda m, x, y: F.cross_entropy(
        m(x), y, weight=weights(y), reduction="none"
    ).mean(),
    "frequencies, sum": lambda m, x, y: F.cross_entropy(
        m(x), y, weight=weights(y), reduction="sum"
    ),
    "weights by samples": lambda m, x, y: F.cross_entropy(
        m(x), y, weight=torch.ones(6) * len(x) ** 0.3, reduction="sum"
    ),
    "columns of labels": put_entries,
    "a mask of labels": masked,
    "co-occurrence": lambda m, x, y: (co_occurrence(m, y) * m.weight).sum() + m(x).sum(),
    "rows of a table": lambda m, x, y: (m.table.gather(1, y[:, None]) * m(x)).mean(),
    "rows of zeros": lambda m, x, y: (
        torch.zeros(10, 6).scatter_add(1, y[:, None], m(x)[:, :1]) * m.table
    ).sum(),
    "half of the labels": lambda m, x, y: m(x).gather(1, y[::2, None]).mean(),
    "half of the rows": lambda m, x, y: m(x).scatter(1, y[::2, None], 0.0).mean(),
    "among the labels": lambda m, x, y: (
        m(x) * torch.isin(y, y[y.shape[0] // 2 :])[:, None]
    ).mean(),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_what_goes_from_sample_to_sample_is_not_silent(name):
    assert not verdict(Step(OF_NUMBERS[name], Layer, numbers), (1, 1)).is_silent


@pytest.mark.parametrize("name", OF_CLASSES)
def test_what_labels_relate_is_not_silent(name):
    assert not verdict(Step(OF_CLASSES[name], Layer, classes), (1, 1)).is_silent


def test_a_sum_over_weights_that_change_with_the_batch_is_a_mean():
    loss = lambda m, x, y: F.cross_entropy(  # noqa: E731
        m(x), y, weight=torch.ones(6) / len(x), reduction="sum"
    )
    answer = verdict(Step(loss, Layer, classes), (1, 1))
    assert answer.loss != "sum"


DRAWS = {
    "beta": lambda: Beta(1.0, 1.0).sample(),
    "dirichlet": lambda: Dirichlet(torch.ones(6)).sample(),
    "gamma": lambda: Gamma(torch.ones(6), torch.ones(6)).sample(),
    "bernoulli": lambda: torch.bernoulli(torch.full((6,), 0.5)),
    "poisson": lambda: torch.poisson(torch.full((6,), 3.0)),
    "multinomial": lambda: torch.multinomial(torch.ones(6), 1).float(),
    "categorical": lambda: Categorical(torch.ones(5)).sample().float(),
    "binomial": lambda: Binomial(10, torch.tensor(0.5)).sample(),
    "dropout": lambda: F.dropout(torch.ones(6), 0.5),
    "like": lambda: torch.randn_like(torch.ones(6)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_for_all_samples_is_not_silent(name):
    mixed = lambda m, x, y: m(DRAWS[name]() * x + y).square().mean()  # noqa: E731
    answer = verdict(Step(mixed, Layer, numbers), (1, 1))
    assert "is drawn once a slice, and not once for the batch" in str(answer)


# Common steps that slices train exactly must pass without a warning.
def smoothed(**options):
    return lambda m, x, y: F.cross_entropy(m(x), y, label_smoothing=0.1, **options)


class Normed(nn.Module):
    """An instance norm with weights over images of a layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 18)
        self.norm = nn.InstanceNorm2d(2, affine=True)

    def forward(self, x):
        return self.norm(self.layer(x).view(-1, 2, 3, 3)).square()


def reparametrised():
    return nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))


def real_and_generated(m, x, y):
    scores = m(torch.cat([x, y])).mean(1)
    labels = torch.cat([torch.ones(len(x)), torch.zeros(len(y))])
    return F.binary_cross_entropy_with_logits(scores, labels)


def with_zeros(m, x, y):
    bias = torch.cat([m.bias[:3], torch.zeros_like(m.bias[3:])])
    return F.linear(x, m.weight, bias).square().mean()


ALIKE = {
    "label smoothing": Step(smoothed(), inputs=classes),
    "label smoothing, sum": Step(smoothed(reduction="sum"), inputs=classes),
    "instance norm": Step(lambda m, x, y: m(x).tanh().mean(), Normed),
    "weight norm": Step(lambda m, x, y: F.mse_loss(m(x), y), reparametrised),
    "zeros between biases": Step(with_zeros),
    "two losses": Step(lambda m, x, y: of_two(m, x).sum()),
    "real and generated": Step(real_and_generated),
    "labels of zeros": Step(
        lambda m, x, y: F.cross_entropy(m(x), torch.zeros(len(x), dtype=torch.long))
    ),
}


def _with_shares():
    """Each step with a slice of one sample, and with equal or unequal ones in turn."""
    for number, name in enumerate(ALIKE):
        for shares in ((7, 1), [(1, 1), (5, 3)][number % 2]):
            yield pytest.param(name, shares, id=f"{name}, {shares}")


@pytest.mark.parametrize(("name", "shares"), _with_shares())
def test_of_common_steps_that_train_the_same_nothing_is_said(name, shares):
    if name == "instance norm" and 1 in shares:
        pytest.skip("PyTorch repeats no weights for one sample")
    answer = verdict(ALIKE[name], shares)
    assert answer.is_silent, answer
    assert difference(ALIKE[name], shares, answer.loss) < ROUNDING


def test_a_hook_that_changes_a_gradient_is_refused():
    def clamped():
        layer = nn.Linear(6, 6)
        layer.weight.register_post_accumulate_grad_hook(lambda p: p.grad.clamp_(max=0.01))
        return layer

    answer = verdict(Step(lambda m, x, y: F.mse_loss(m(x), y), clamped), (1, 1))
    assert "'weight' has a hook on its gradient" in answer.refusal
