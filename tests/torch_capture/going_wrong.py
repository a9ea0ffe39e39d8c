"""Ways to go wrong in a step, each with how the answer begins behind the line that it names."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from situate.torch_capture.refusals import remedies

Step = Callable[[Any, Tensor], Any]


class Model(nn.Module):
    """Layers, and a step that uses them as a case says."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.layer, self.words = nn.Linear(4, 4), nn.Embedding(10, 4)
        self.register_buffer("held", torch.zeros(4))
        self._step = step

    def forward(self, x: Tensor) -> Any:
        return self._step(self, x)


class Plain(torch.Tensor):
    """A class of its own."""


class Straight(torch.autograd.Function):
    """Has a gradient of its own."""

    @staticmethod
    def forward(_: Any, x: Tensor, module: Any = None) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def branch(model: Any, x: Tensor) -> Tensor:
    y = model.layer(x)
    return y.mean() if y.sum().item() > 0 else y.sum()


def checked(model: Any, x: Tensor) -> Tensor:
    assert x.sum() > 0, "must be positive"
    return model.layer(x).mean()


def halved(model: Any, x: Tensor) -> Tensor:
    y = model.layer(x)
    while y.norm() > 1:
        y = y / 2
    return y.mean()


def wrapped(model: Any, x: Tensor) -> Tensor:
    try:
        return model.layer(x).mean() * x.sum().item()
    except Exception as error:
        raise RuntimeError(f"bad: {error}") from error


def in_a_thread(model: Any, x: Tensor) -> Tensor:
    results: list[Tensor] = []
    thread = threading.Thread(target=lambda: results.append(model.layer(x)))
    thread.start()
    thread.join()
    return results[0].mean()


def in_a_pool(model: Any, x: Tensor) -> Tensor:
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(model.layer, x.split(3))).mean()


def raised(_: Any, __: Tensor) -> Tensor:
    raise ValueError("no such thing\nsecond line")


def at_least(x: Tensor) -> Tensor:
    return x[x[:, 0] > 0]


def by_values(step: Step) -> tuple[Step, str]:
    return step, remedies.VALUES


def of_size(step: Step) -> tuple[Step, str]:
    return step, remedies.SHAPES


def read_out(step: Step) -> tuple[Step, str]:
    return step, remedies.READ_OUT


def number(x: Tensor) -> Any:
    return x[0, 0].long().item()


WRONG: dict[str, tuple[Step, str]] = {
    "branch": by_values(branch),
    "any": by_values(lambda m, x: m.layer(x).mean() if (x > 0).any() else m.layer(x).sum()),
    "equal": by_values(lambda m, x: m.layer(x).mean() if torch.equal(x, x + 1) else x.sum()),
    "assert": by_values(checked),
    "while": by_values(halved),
    "range": by_values(lambda m, x: sum(m.layer(x).mean() for _ in range(x[0, 0].long()))),
    "float": by_values(lambda m, x: m.layer(x).mean() * float(x.sum())),
    "tolist": by_values(lambda m, x: m.layer(x).mean() * sum(x[0].tolist())),
    "sorted": by_values(lambda m, x: sorted(m.layer(x).mean(0))[0]),
    "list of modules": by_values(lambda m, x: [m.layer, m.layer][x[0, 0].long()](x).mean()),
    "index by a number": by_values(lambda m, x: m.layer(x)[number(x)].mean()),
    "slice by a number": by_values(lambda m, x: m.layer(x)[: number(x)].mean()),
    "view by a number": by_values(lambda m, x: m.layer(x).view(number(x), -1).mean()),
    "arange of a number": by_values(lambda m, x: m.layer(x).mean() + torch.arange(number(x)).sum()),
    "count that is asked": by_values(
        lambda m, x: m.layer(x).mean() if len(at_least(x)) else x.sum()
    ),
    "rows in a loop": by_values(lambda m, x: sum(m.layer(row).mean() for row in at_least(x))),
    "wrapped error": by_values(wrapped),
    "draw that is looked at": by_values(lambda m, x: m.layer(x).mean() * torch.rand(1).item()),
    "selection": of_size(lambda m, x: m.layer(at_least(x)).mean()),
    "ones of a selection": of_size(lambda m, x: m.layer(x).mean() * torch.ones((len_of(x),)).sum()),
    "full of a selection": of_size(
        lambda m, x: m.layer(x).mean() * torch.full((len_of(x),), 2.0).sum()
    ),
    "zeros of a selection's shape": of_size(
        lambda m, x: m.layer(x).mean() + torch.zeros(at_least(x).shape).sum()
    ),
    "random of a selection": of_size(lambda m, x: m.layer(x).mean() * torch.rand(len_of(x)).sum()),
    "nonzero": of_size(lambda m, x: m.layer(x)[(x[:, 0] > 0).nonzero().squeeze(1)].mean()),
    "where": of_size(lambda m, x: m.layer(x)[torch.where(x[:, 0] > 0)].mean()),
    "unique": of_size(lambda m, x: m.words(torch.unique(x.long().clamp(0, 9))).mean()),
    "masked_select": of_size(lambda m, x: torch.masked_select(m.layer(x), x > 0).mean()),
    "repeat_interleave": of_size(
        lambda m, x: m.layer(x).repeat_interleave(x[:, 0].long(), 0).mean()
    ),
    "bincount": of_size(lambda m, x: m.layer(x).mean() * torch.bincount(x.long().flatten()).sum()),
    "combinations": of_size(lambda m, x: torch.combinations(m.layer(x)[0]).mean()),
    "packed": (
        lambda m, x: nn.utils.rnn.pack_sequence([m.layer(x), m.layer(x)[:2]]).data.mean(),
        remedies.PACKED,
    ),
    "numpy": read_out(lambda m, x: m.layer(x).mean() * float(x.numpy().sum())),
    "numpy's functions": read_out(lambda m, x: m.layer(x).mean() * np.asarray(x).sum()),
    "text of a number": read_out(lambda m, x: (f"{x.sum():.3f}", m.layer(x).mean())[1]),
    "address": read_out(lambda m, x: m.layer(x).mean() * (x.data_ptr() % 2)),
    "storage": read_out(lambda m, x: m.layer(x).mean() * x.untyped_storage()[0]),
    "copied module": (lambda m, x: copy.deepcopy(m.layer)(x).mean(), remedies.COPIED),
    "copied tensor": (lambda m, x: copy.deepcopy(m.layer(x)).mean(), remedies.COPIED),
    "saved": (
        lambda m, x: (torch.save(x, io.BytesIO()), m.layer(x).mean())[1],
        remedies.SAVED,
    ),
    "pickled": (lambda m, x: (pickle.dumps(x), m.layer(x).mean())[1], remedies.SAVED),
    "thread": (in_a_thread, remedies.THREADS),
    "pool": (in_a_pool, remedies.THREADS),
    "sparse": (
        lambda m, x: torch.sparse_coo_tensor([[0], [1]], [1.0], (6, 6)) @ m.layer(x),
        remedies.SPARSE,
    ),
    "nested": (
        lambda m, x: torch.nested.nested_tensor([m.layer(x), x]).to_padded_tensor(0.0).mean(),
        remedies.NESTED,
    ),
    "jagged": (
        lambda m, x: m.layer(torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged)),
        remedies.NESTED,
    ),
    "scripted": (lambda m, x: torch.jit.trace(m.layer, x)(x).mean(), remedies.SCRIPT),
    "class of its own": (lambda m, x: m.layer(x.as_subclass(Plain)).mean(), remedies.SUBCLASS),
    "collective": (
        lambda m, x: (torch.distributed.all_reduce(x), m.layer(x).mean())[1],
        remedies.COMMUNICATION,
    ),
    "gradient": (
        lambda m, x: torch.autograd.grad(m.layer(x).sum(), m.layer.weight)[0].mean(),
        remedies.GRADIENTS,
    ),
    "jacobian": (lambda m, x: torch.func.jacrev(m.layer)(x).mean(), remedies.GRADIENTS),
    "hook": (
        lambda m, x: (lambda y: (y.register_hook(abs), y.mean())[1])(m.layer(x)),
        "capture does not see a hook",
    ),
    "backward": (
        lambda m, x: (m.layer(x).mean().backward(), m.layer(x).mean())[1],
        "the step calls backward() itself",
    ),
    "function of a module": (
        lambda m, x: Straight.apply(m.layer(x), m.layer).mean(),
        "capture does not see the backward pass of autograd.Function 'Straight'",
    ),
    "mixed dtypes": (
        lambda m, x: m.layer(x.double()).mean(),
        "a product of float32 and float64 is asked for here, which PyTorch makes of one dtype",
    ),
    "written parameter": (
        lambda m, x: (m.layer.weight.add_(1), m.layer(x).mean())[1],
        "RuntimeError: a leaf Variable that requires grad",
    ),
    "shapes": (lambda m, x: m.layer(x[:, :3]).mean(), "RuntimeError: "),
    "sum of shapes": (lambda m, x: (m.layer(x) + torch.ones(5, 4)).mean(), "RuntimeError: "),
    "view": (lambda m, x: m.layer(x).view(5, 5).mean(), "RuntimeError: shape '[5, 5]' is invalid"),
    "words of floats": (lambda m, x: m.words(x).mean(), "RuntimeError: Expected tensor for arg"),
    "labels": (
        lambda m, x: F.cross_entropy(m.layer(x), torch.zeros(5, dtype=torch.long)),
        "ValueError: Expected input batch_size (6)",
    ),
    "out of range": (lambda m, x: m.layer(x)[9].mean(), "IndexError: index 9 is out of bounds"),
    "attribute": (lambda m, x: m.layr(x).mean(), "AttributeError: 'Model' object has no attribut"),
    "method": (lambda m, x: m.layer(x).meen(), "AttributeError: 'Tensor' object has no attribut"),
    "the user's own": (raised, "ValueError: no such thing"),
    "generator": (
        lambda m, x: (m.layer(x) * torch.rand(6, 4, generator=torch.Generator())).mean(),
        "the step draws from a torch.Generator of its own",
    ),
}


def len_of(x: Tensor) -> int:
    """The size of a selection."""
    return at_least(x).size(0)


WITHOUT_A_LINE: dict[str, tuple[Step, str]] = {
    "no loss": (lambda m, x: None, "the step is loss(model, *inputs), which must return one"),
    "loss of whole numbers": (lambda m, x: m.layer(x).argmax(), "the step is loss(model, *in"),
    "complex loss": (lambda m, x: torch.fft.fft(m.layer(x)).mean(), "the step is loss(model, *in"),
    "text": (lambda m, x: "loss", "the step is loss(model, *inputs), which must return one"),
    "detached loss": (lambda m, x: m.layer(x).detach().mean(), "the loss depends on no parameter"),
    "quantised": (
        lambda m, x: torch.quantize_per_tensor(m.layer(x), 0.1, 0, torch.qint8).dequantize().sum(),
        "the loss depends on no parameter",
    ),
    "to sparse": (
        lambda m, x: (m.layer(x).to_sparse() * 2).to_dense().mean(),
        "the step: makes a sparse tensor",
    ),
    "overwritten": (
        lambda m, x: (lambda y: (y * y).sum() + y.add_(1).mean())(m.layer(x)),
        f"capturing the step: {remedies.OVERWRITTEN}",
    ),
    "data": (
        lambda m, x: (m.layer(x).data * m.layer(x)).mean(),
        f"capturing the step: {remedies.DATA}",
    ),
}

FINE: dict[str, Step] = {
    "function": lambda m, x: Straight.apply(m.layer(x)).mean(),
    "printed": lambda m, x: (repr(x), m.layer(x).mean())[1],
    "complex": lambda m, x: torch.fft.fft(m.layer(x)).abs().mean(),
    "vmap": lambda m, x: torch.vmap(m.layer)(x).mean(),
    "compiled": lambda m, x: torch.compile(m.layer)(x).mean(),
    "mask set": lambda m, x: (lambda y: (y.__setitem__(x > 0, 0.0), y)[1])(
        m.layer(x).clone()
    ).mean(),
    "hook of a module": lambda m, x: (
        m.layer.register_forward_hook(lambda *_: None),
        m.layer(x).mean(),
    )[1],
}
