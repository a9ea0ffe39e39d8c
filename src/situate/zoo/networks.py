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
    """

    file: str
    function: str
    optimizer: str
    expert: Literal["one", "layers", "blocks"]
    arguments: tuple[int, ...] = ()
    packages: tuple[str, ...] = ()

    def build(self) -> ModelParts:
        """Model, inputs and loss."""
        module = importlib.import_module(f"situate.zoo.{self.file}")
        model: ModelParts = getattr(module, self.function)(*self.arguments)
        return model


def _transformer(function: str) -> Network:
    return Network("transformer", function, "adamw", "blocks", packages=("transformers",))


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
    "gpt2": _transformer("gpt2"),
    "bert": _transformer("bert"),
    "vit": _transformer("vit"),
    "llama_7b": _transformer("llama_7b"),
    "llama_70b": _transformer("llama_70b"),
    "moe": Network("moe", "build", "adamw", "blocks", packages=("transformers",)),
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
