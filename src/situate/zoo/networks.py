"""The table of networks: what builds each, and how it is trained."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from situate.errors import SituateError, nearest
from situate.validation import check

if TYPE_CHECKING:
    from situate.zoo.built import Built


@dataclass(frozen=True)
class Network:
    """`function` of the zoo's file `file`, called with `arguments`; `expert` names the rule of its
    placement by hand, see `situate.zoo.placement`."""

    file: str
    function: str
    optimizer: str
    expert: Literal["one", "layers", "blocks"]
    arguments: tuple[int, ...] = ()
    packages: tuple[str, ...] = ()

    def build(self) -> Built:
        """Model, inputs and loss."""
        module = importlib.import_module(f"situate.zoo.{self.file}")
        built: Built = getattr(module, self.function)(*self.arguments)
        return built


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
    """The network of that name, and whether it trains.

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


def build(name: str) -> Built:
    """Model, inputs and loss of a network, for real: the large ones need as much memory as their
    weights. The step is `loss(model, *inputs)`.

    Raises:
        MissingExtra: PyTorch, or transformers where the network needs it, is not installed.
        SituateError: no such network.
    """
    found, _ = network(name)
    from situate.torch_capture import check_installed

    check_installed(*found.packages)
    return found.build()
