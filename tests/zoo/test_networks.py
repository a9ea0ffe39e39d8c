"""The networks themselves."""

from __future__ import annotations

import pytest

from situate import zoo
from situate.errors import MissingExtra, SituateError

NAMES = [
    "inception_v3", "resnet50", "resnet101", "resnet200", "rnnlm", "nmt2", "nmt4", "nmt8",
    "cifar_cnn", "gpt2", "bert", "vit", "llama_7b", "llama_70b", "moe",
]  # fmt: skip


# Names and packages.
def test_names():
    assert zoo.names() == NAMES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("inception_v4", "no network 'inception_v4' in the zoo; did you mean 'inception_v3'"),
        ("resnet50:inferense", "only ':inference' can stand"),
        ("", "known: bert"),
    ],
)
def test_unknown_names(name: str, message: str):
    for function in (zoo.build, zoo.load):
        with pytest.raises(SituateError, match=message):
            function(name)


def test_a_package_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "transformers" else name
    )
    with pytest.raises(MissingExtra, match=r"needs transformers, .*situate\[torch\]"):
        zoo.build("moe")


# Networks run with real numbers.
def test_a_step_can_be_run():
    pytest.importorskip("torch")
    model, inputs, loss = zoo.build("cifar_cnn")
    loss(model, *inputs).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_auxiliary_head_only_trains():
    torch = pytest.importorskip("torch")
    with torch.device("meta"):
        model, (images, _), _ = zoo.build("inception_v3")
    assert [tuple(out.shape) for out in model.train()(images)] == [(32, 1000), (32, 1000)]
    assert [tuple(out.shape) for out in model.eval()(images)] == [(32, 1000)]
