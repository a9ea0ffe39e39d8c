"""Ops that relate the samples of a batch give a warning or a refusal. Ops that keep samples apart
give none."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from tests.torch_capture.slices.dependence.judge import (  # noqa: E402
    ROUNDING,
    Step,
    difference,
    verdict,
)


def _circulant(z):
    return F.pad(z.t().unsqueeze(1), (1, 1), mode="circular").squeeze(1).t()


def _pooled(z):
    return F.avg_pool1d(z.t(), 2, 1).t()


def _convolved(z):
    return F.conv1d(z.t().unsqueeze(1), torch.full((1, 1, 3), 0.3), padding=1).squeeze(1).t()


def _masked_first(z):
    keep = torch.arange(len(z)) < len(z) // 2
    return z * keep.unsqueeze(1)


class _Normed(torch.autograd.Function):
    """The identity, whose gradient is divided by its length over the whole batch."""

    @staticmethod
    def forward(ctx, z):
        return z.clone()

    @staticmethod
    def backward(ctx, g):
        return g / g.norm()


normed = _Normed.apply


# Ops that relate samples are named, and ops that keep them apart train exactly without a warning.
RELATED = {
    "halves, split": lambda z: z.split(len(z) // 2)[0] * z.split(len(z) // 2)[1],
    "halves, chunk": lambda z: z.chunk(2)[0] - z.chunk(2)[1],
    "halves, slices": lambda z: z[: len(z) // 2] * z[len(z) // 2 :],
    "halves, view": lambda z: z.view(2, -1, 6)[0] * z.view(2, -1, 6)[1],
    "halves, tensor_split": lambda z: z.tensor_split(2)[0] * z.tensor_split(2)[1],
    "first half": lambda z: z[: len(z) // 2],
    "all but the first": lambda z: z[1:],
    "the first": lambda z: z - z[0],
    "the last": lambda z: z * z[-1].unsqueeze(0),
    "neighbours": lambda z: z[1:] - z[:-1],
    "diff": lambda z: torch.diff(z, dim=0),
    "flip": lambda z: z * z.flip(0),
    "roll": lambda z: z * z.roll(1, 0),
    "padding that shifts": lambda z: z * F.pad(z, (0, 0, 1, 0))[:-1],
    "circular padding": lambda z: _circulant(z)[2:] * z,
    "pooling": _pooled,
    "convolution": _convolved,
    "unfold": lambda z: z.unfold(0, 2, 1).prod(-1),
    "cumsum": lambda z: z.cumsum(0),
    "cumprod": lambda z: z.cumprod(0),
    "logcumsumexp": lambda z: z.logcumsumexp(0),
    "cummax": lambda z: z.cummax(0).values,
    "sort": lambda z: z * z.sort(0).values,
    "topk": lambda z: z.topk(2, 0).values,
    "median": lambda z: z - z.median(0).values,
    "softmax": lambda z: z.softmax(0),
    "log_softmax": lambda z: z.log_softmax(0),
    "mean": lambda z: z - z.mean(0),
    "variance": lambda z: z / (1 + z.var(0)),
    "standard deviation": lambda z: z / (1 + z.std()),
    "maximum": lambda z: z - z.amax(0),
    "length": lambda z: z / z.norm(),
    "normalize": lambda z: F.normalize(z, dim=0),
    "logsumexp": lambda z: z - z.logsumexp(0),
    "one mean of all": lambda z: z * z.mean(),
    "detached mean": lambda z: z * z.mean(0).detach(),
    "batch norm without a module": lambda z: F.batch_norm(z, None, None, training=True),
    "similarities": lambda z: z @ z.t(),
    "attention over samples": lambda z: (z @ z.t()).softmax(1) @ z,
    "scaled attention over samples": lambda z: F.scaled_dot_product_attention(
        z[None], z[None], z[None]
    ),
    "distances": lambda z: torch.cdist(z, z),
    "differences of all": lambda z: (z[:, None] - z[None]).square(),
    "covariance": lambda z: z * (z.t() @ z).sum(),
    "outer product": lambda z: torch.outer(z[:, 0], z[:, 1]),
    "einsum": lambda z: torch.einsum("id,jd->ij", z, z),
    "shuffled": lambda z: z * z[torch.randperm(len(z))],
    "turned round by an index": lambda z: z * z[torch.arange(len(z) - 1, -1, -1)],
    "by index_select": lambda z: z * z.index_select(0, torch.arange(len(z) - 1, -1, -1)),
    "by gather": lambda z: z.gather(0, z.argsort(0)) * z,
    "scatter": lambda z: torch.zeros_like(z).scatter(0, z.argsort(0), z) * z,
    "index_put": lambda z: z.index_put((torch.tensor([0]),), z[-1]),
    "index_copy": lambda z: z.index_copy(0, torch.tensor([0]), z[1:2]),
    "index_add": lambda z: z.index_add(0, torch.tensor([0, 1]), z[:2]),
    "index_fill": lambda z: z.index_fill(0, torch.tensor([0]), 0.5),
    "written slice": lambda z: torch.cat([z[:1] * 0, z[1:]]),
    "slice_scatter": lambda z: z.slice_scatter(z[:1] * 2, 0, 0, 1),
    "select_scatter": lambda z: z.select_scatter(z[0] * 2, 0, 0),
    "places": lambda z: z * torch.arange(len(z)).unsqueeze(1),
    "linspace": lambda z: z * torch.linspace(0, 1, len(z)).unsqueeze(1),
    "first n": _masked_first,
    "triangle": lambda z: torch.tril(z),
    "identity matrix": lambda z: z @ torch.ones(6, len(z)) * (1 - torch.eye(len(z))),
    "places as labels": lambda z: z * F.one_hot(torch.arange(len(z)) % 6, 6),
    "diagonal": lambda z: (z @ torch.ones(6, len(z))).diagonal() * z[:, 0].flip(0),
    "queue": lambda z: torch.cat([z, torch.ones(3, 6)]).softmax(0),
    "one draw for all": lambda z: z * torch.rand(()),
    "one mask for all": lambda z: z * (torch.rand(6) > 0.5),
    "noise on a mean": lambda z: z.mean(0) * torch.randn(6),
    "gradient by its length": lambda z: _Normed.apply(z),
    "gradient by its length, by another name": lambda z: normed(z),
    "size as a factor": lambda z: (z * len(z)).tanh(),
    "size as an exponent": lambda z: z.sigmoid() ** len(z),
    "size as a threshold": lambda z: z.clamp(max=len(z) / 10),
    "root of size": lambda z: (z / len(z) ** 0.5).sigmoid(),
    "size as a feature's number": lambda z: z[:, len(z) // 4],
    "size as a range of features": lambda z: z[:, len(z) // 4 : len(z) // 4 + 2],
    "size as a shift of features": lambda z: z * z.roll(len(z), 1),
    "size as a padding of features": lambda z: F.pad(z, (0, 8 // len(z)))[:, :6] * z.softmax(1),
    "size as a diagonal": lambda z: z.view(-1, 2, 3).tril(len(z) // 4 - 1),
    "size in a norm": lambda z: F.layer_norm(z, (6,), eps=1 / len(z)),
    "size in a variance": lambda z: z.var(1, correction=len(z) // 4),
    "size in a length": lambda z: z.norm(p=8 / len(z) + 1, dim=1),
    "size in a dropout": lambda z: F.dropout(z, 1 / len(z)),
    "softmax of zeros, with a sum": lambda z: (
        z.sum() + (torch.zeros_like(z[0]).softmax(0) * torch.arange(6)).sum() / 48
    ),
    "logsumexp of zeros, with a sum": lambda z: z.sum() + torch.zeros(6).logsumexp(0) * 1.0,
    "views in another order": lambda z: torch.cat([z, z * 2]).index_put(
        (torch.arange(2 * len(z)),), torch.cat([z, z]).view(2, -1, 6).transpose(0, 1).flatten(0, 1)
    ),
    "places put": lambda z: (
        z
        * torch.zeros(len(z)).index_put((torch.arange(len(z)),), 1.0 * torch.arange(len(z)))[
            :, None
        ]
    ),
    "fft": lambda z: torch.fft.rfft(z, dim=0).abs(),
    "transposed product": lambda z: z.t() @ z,
    "trapezoid": lambda z: torch.trapezoid(z, dim=0),
    "layer norm over samples": lambda z: F.layer_norm(z.t(), (len(z),)).t(),
    "group norm over samples": lambda z: F.group_norm(z.t().unsqueeze(0), 2).squeeze(0),
    "embedding": lambda z: F.embedding(torch.tensor([0, 1]), z),
}

APART = {
    "itself": lambda z: z,
    "pairs of neighbours": lambda z: z[::2] * z[1::2],
    "pairs by a view": lambda z: z.view(-1, 2, 6)[:, 0] * z.view(-1, 2, 6)[:, 1],
    "two views, and back": lambda z: torch.cat([z, z * 2]).tanh().chunk(2)[1],
    "three views": lambda z: torch.cat([z, z * 2, z * 3]).tanh().split(len(z))[2],
    "stacked views": lambda z: torch.stack([z, z.sin()]).mean(0),
    "repeated": lambda z: z.repeat(2, 1).tanh(),
    "repeated in place": lambda z: z.repeat_interleave(3, 0).tanh(),
    "own places": lambda z: z[torch.arange(len(z)), z.argmax(1)],
    "own place by gather": lambda z: z.gather(1, z.argmax(1, keepdim=True)),
    "take_along_dim": lambda z: z.take_along_dim(z.argsort(1), 1),
    "features flipped": lambda z: z.flip(1).roll(1, 1) * z,
    "features sorted": lambda z: z.sort(1).values.cumsum(1),
    "softmax of features": lambda z: z.softmax(1) * z.log_softmax(-1),
    "layer norm": lambda z: F.layer_norm(z, (6,)),
    "group norm": lambda z: F.group_norm(z, 2),
    "instance norm": lambda z: F.instance_norm(z.view(-1, 2, 3)),
    "length of features": lambda z: F.normalize(z, dim=1),
    "attention within": lambda z: F.scaled_dot_product_attention(*[z.view(-1, 1, 3, 2)] * 3),
    "products within": lambda z: torch.bmm(z.view(-1, 2, 3), z.view(-1, 3, 2)),
    "einsum within": lambda z: torch.einsum("bi,bj->bij", z, z),
    "distances within": lambda z: torch.cdist(z.view(-1, 3, 2), z.view(-1, 3, 2)),
    "convolution within": lambda z: F.conv1d(z.unsqueeze(1), torch.ones(2, 1, 3)),
    "pooling within": lambda z: F.max_pool1d(z.unsqueeze(1), 2) * F.avg_pool1d(z.unsqueeze(1), 2),
    "interpolation": lambda z: F.interpolate(z.view(-1, 1, 2, 3), scale_factor=2, mode="bilinear"),
    "padding within": lambda z: F.pad(z, (1, 2)) * 2,
    "reflected": lambda z: F.pad(z.unsqueeze(1), (1, 1), mode="reflect"),
    "unfold within": lambda z: z.unfold(1, 2, 1).prod(-1),
    "samples last": lambda z: (z.t() * 2).t().contiguous(),
    "samples in the middle": lambda z: z.view(-1, 2, 3).transpose(0, 1).softmax(0),
    "samples folded": lambda z: z.view(-1, 2, 3).flatten(0, 1).softmax(1),
    "samples folded inside": lambda z: (
        z.view(-1, 2, 3).transpose(0, 1).reshape(-1, 3).tanh().view(2, -1, 3).sum(0)
    ),
    "a token for each": lambda z: torch.cat(
        [torch.ones(1, 1, 6).expand(len(z), 1, 6), z[:, None]], 1
    ),
    "ones": lambda z: z + torch.ones(len(z), 1),
    "one-hot": lambda z: F.one_hot(z.argmax(1), 6) * z,
    "where": lambda z: torch.where(z > 0, z, z.exp()),
    "masked": lambda z: z.masked_fill(z < 0, -1.0).relu(),
    "causal mask": lambda z: z.view(-1, 2, 3) @ torch.tril(torch.ones(3, 3)),
    "select": lambda z: z[:, 0] * z[:, -1],
    "range": lambda z: z[:, 1:] - z[:, :-1],
    "reductions within": lambda z: z.amax(1) + z.var(1) + z.logsumexp(1) + z.norm(dim=1),
    "square root": lambda z: (z.square() + 1).sqrt().log(),
    "size that cancels": lambda z: ((z * len(z)) / len(z)).tanh(),
    "complex": lambda z: torch.fft.rfft(z, dim=1).abs(),
    "matrices": lambda z: torch.linalg.inv(z[:, :4].view(-1, 2, 2) + 3 * torch.eye(2)),
    "positions": lambda z: z + torch.arange(6),
    "glu": lambda z: F.glu(z, 1),
    "prelu": lambda z: F.prelu(z, torch.tensor([0.3])),
    "elu": lambda z: F.elu(z) + F.softplus(z) + F.hardswish(z) + F.mish(z) + F.logsigmoid(z),
}


HEADS = {
    "mean": lambda out: out.mean(),
    "sum": lambda out: out.sum(),
}


def _step(relation, head):
    return Step(lambda m, x, y: head(_scalar(relation(m(x)))), inputs=lambda: _inputs())


def _inputs():
    return torch.randn(8, 6), torch.randn(8, 6)


def _scalar(out):
    return out.abs() if out.is_complex() else out


@pytest.mark.parametrize("name", RELATED)
def test_what_relates_samples_is_warned_of_or_refused(name):
    step = _step(RELATED[name], HEADS["mean"])
    warnings = verdict(step, (1, 1))
    if warnings.is_silent:
        assert difference(step, (1, 1), warnings.loss) < ROUNDING
        assert name in LINEAR


LINEAR = {"transposed product"}
"""Relations whose mean the slices add up to."""


@pytest.mark.parametrize(("number", "name"), enumerate(APART))
def test_of_samples_that_stay_apart_nothing_is_said(number, name):
    head, shares = [("mean", (1, 1)), ("sum", (3, 1))][number % 2]
    step = _step(APART[name], HEADS[head])
    warnings = verdict(step, shares)
    assert warnings.is_silent, warnings
    assert warnings.loss == head
    assert difference(step, (1, 1), warnings.loss) < ROUNDING
