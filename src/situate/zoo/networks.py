"""The networks of the zoo in one table."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from situate.errors import SituateError, nearest
from situate.validation import check

if TYPE_CHECKING:
    from situate.zoo.parts import ModelParts


@dataclass(frozen=True)
class Network:
    """An entry of the table.

    Attributes:
        file, function, arguments: the call that builds the model.
        optimizer: the default update of a training step.
        expert: the rule of its placement by hand, see `situate.zoo.placement`.
        packages: required besides PyTorch.
        sizes: of a decoder of equal layers, as layouts of training runs read them; else empty.
    """

    file: str
    function: str
    optimizer: str
    expert: Literal["one", "layers", "blocks"]
    arguments: tuple[int, ...] = ()
    packages: tuple[str, ...] = ()
    sizes: str = ""

    def build(self) -> ModelParts:
        """Model, inputs and loss."""
        module = importlib.import_module(f"situate.zoo.{self.file}")
        model: ModelParts = getattr(module, self.function)(*self.arguments)
        return model


def _transformer(function: str, sizes: str = "") -> Network:
    packages = ("transformers",)
    return Network("transformer", function, "adamw", "blocks", packages=packages, sizes=sizes)


GPT2 = "layers=12,hidden=768,heads=12,ffn=3072,vocab=50257,matrices=2,positions=1024,tied=1"
LLAMA_7B = "layers=32,hidden=4096,heads=32,ffn=11008,vocab=32000"
LLAMA_70B = "layers=80,hidden=8192,heads=64,kv=8,ffn=28672,vocab=32000"
MIXTRAL = "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=32000,experts=8,used=2"
"""Sizes of the configurations from which the networks are built."""


NETWORKS = {
    "inception_v3": Network("inception_v3", "build", "momentum", "one"),
    "resnet50": Network("resnet", "build", "momentum", "one", (3, 4, 6, 3)),
    "resnet101": Network("resnet", "build", "momentum", "one", (3, 4, 23, 3)),
    "resnet200": Network("resnet", "build", "momentum", "one", (3, 24, 36, 3)),
    "rnnlm": Network("rnnlm", "build", "sgd", "layers"),
    "nmt2": Network("nmt", "build", "adam", "layers", (2,)),
    "nmt4": Network("nmt", "build", "adam", "layers", (4,)),
    "nmt8": Network("nmt", "build", "adam", "layers", (8,)),
    "cifar_cnn": Network("cifar_cnn", "build", "sgd", "one"),
    "gpt2": _transformer("gpt2", GPT2),
    "bert": _transformer("bert"),
    "vit": _transformer("vit"),
    "llama_7b": _transformer("llama_7b", LLAMA_7B),
    "llama_70b": _transformer("llama_70b", LLAMA_70B),
    "moe": Network("moe", "build", "adamw", "blocks", packages=("transformers",), sizes=MIXTRAL),
}


def names() -> list[str]:
    """The networks, without `:inference`."""
    return list(NETWORKS)


def network(name: str) -> tuple[Network, bool]:
    """The table's entry for a name, and True unless the name ends in `:inference`.

    Raises:
        SituateError: with the nearest name there is.
    """
    check(name, str, "network")
    base, colon, variant = name.partition(":")
    if base not in NETWORKS:
        raise SituateError(f"no network {base!r} in the zoo{nearest(base, NETWORKS)}")
    if colon and variant != "inference":
        raise SituateError(f"{name!r}: behind a network of the zoo only ':inference' can stand")
    return NETWORKS[base], not colon


def build(name: str) -> ModelParts:
    """Model, inputs and loss of a network, with real weights, which need their full memory. The
    step is `loss(model, *inputs)`.

    Raises:
        MissingExtra: PyTorch, or transformers where the network needs it, is not installed.
        SituateError: no such network.
    """
    entry, _ = network(name)
    from situate.torch_capture import check_installed

    check_installed(*entry.packages)
    return entry.build()
