"""Models that were refused, changed as the message says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import situate
from benchmarks.corpus import parts
from benchmarks.corpus.configuration import Built, Configuration

Change = Callable[[Built, str], Built]
"""From what a refused step is built of, and the message, to what it is built of instead."""

NUMBERS = ("mask", "grid_thw")
"""Ends of names of inputs that the step may make of numbers."""

LABELS = ("labels", "class_labels", "mask_labels")
MOST = 6
"""Messages that are followed one after the other."""


def captured_after_remedies(
    configuration: Configuration, training: bool, message: str, capture: Callable[..., Any]
) -> tuple[bool, str]:
    """Apply the remedy of a refusal, then that of the next, while a message names one.

    Args:
        capture: from a configuration and whether it trains to its graph.

    Returns:
        (True if the model is captured in the end, the changes or the message without a remedy).
    """
    applied: list[str] = []
    for _ in range(MOST):
        result = next((r for r in REMEDIES if r.words in message and r.name not in applied), None)
        if result is None:
            return False, message
        applied.append(result.name)
        configuration = result.applied(configuration, message)
        if result.infers and training:
            return False, f"{result.name} only, after {', '.join(applied[:-1]) or 'nothing else'}"
        try:
            capture(configuration, training)
        except situate.SituateError as error:
            message = str(error)
        else:
            return True, ", ".join(applied)
    return False, message


@dataclass(frozen=True)
class Remedy:
    """The remedy that a message asks for.

    Attributes:
        name: in a row.
        words: of the message.
        change: makes it of a model, its inputs and its loss.
        infers: the step is to be planned without training, so a training step is not captured.
    """

    name: str
    words: str
    change: Change = lambda built, _: built
    infers: bool = False

    def applied(self, configuration: Configuration, message: str) -> Configuration:
        """The configuration, whose models are built with the change."""
        before = configuration.build
        return replace(configuration, build=lambda training: self.change(before(training), message))


def _set(**values: Any) -> Change:
    """Settings, in the configurations of a model and in its modules that have read them."""

    def change(built: Built, _: str) -> Built:
        for module in built[0].modules():
            for owner in (module, *_configs(module)):
                for name, value in values.items():
                    if owner is not module or hasattr(module, name):
                        setattr(owner, name, value)
        return built

    return change


def _configs(module: torch.nn.Module) -> Iterator[Any]:
    config = getattr(module, "config", None)
    if hasattr(config, "to_dict"):
        yield config
        yield from (part for part in vars(config).values() if hasattr(part, "to_dict"))


def _without_mask(built: Built, _: str) -> Built:
    model, inputs, loss = built
    return model, {k: v for k, v in inputs.items() if k != "attention_mask"}, loss


def _without_labels(built: Built, _: str) -> Built:
    model, inputs, _ = built
    return model, {k: v for k, v in inputs.items() if k not in LABELS}, _square


def _square(model: torch.nn.Module, **batch: Any) -> torch.Tensor:
    """The sum of the mean squares of all that the model returns."""
    leaves = tree_leaves(dict(model(**batch)))
    squares = [leaf.square().mean() for leaf in leaves if _is_number(leaf)]
    return torch.stack(squares).sum()


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.requires_grad


def _experts_batched(built: Built, _: str) -> Built:
    built[0].set_experts_implementation("batched_mm")
    return built


def _with_decoder_ids(built: Built, _: str) -> Built:
    model, inputs, loss = built
    return model, {**inputs, "decoder_input_ids": inputs["labels"].clone()}, loss


def _with_positions(built: Built, _: str) -> Built:
    model, inputs, loss = built
    [compute] = [m.get_rope_index for m in model.modules() if hasattr(m, "get_rope_index")]
    batch = inputs | model.tensors() if isinstance(model, OfNumbers) else inputs
    wanted = inspect.signature(compute).parameters
    positions = compute(**{name: value for name, value in batch.items() if name in wanted})[0]
    return model, {**inputs, "position_ids": positions}, loss


def _of_numbers(built: Built, _: str) -> Built:
    model, inputs, loss = built
    if not isinstance(inputs, dict):
        return built
    mine = {k: v for k, v in inputs.items() if k.endswith(NUMBERS) and not v.is_floating_point()}
    return OfNumbers(model, mine), {k: v for k, v in inputs.items() if k not in mine}, loss


class OfNumbers(torch.nn.Module):
    """A model, some of whose inputs the step makes of numbers."""

    def __init__(self, model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.model = model
        self.constants = {name: (value.tolist(), value.dtype) for name, value in batch.items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Those inputs."""
        return {
            k: torch.tensor(values, dtype=dtype) for k, (values, dtype) in self.constants.items()
        }

    def forward(self, **batch: Any) -> Any:
        """The model's result."""
        return self.model(**batch, **self.tensors())


def _parts_infer(built: Built, message: str) -> Built:
    [name] = re.findall(r"the modules of class (\w+) alone infer", message)
    for module in built[0].modules():
        if name in (kind.__name__ for kind in type(module).__mro__):
            module.eval()
    return built


REMEDIES = (
    Remedy(
        "layerdrop 0",
        "set layerdrop",
        _set(layerdrop=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0),
    ),
    Remedy("no spec augment", "apply_spec_augment=False", _set(apply_spec_augment=False)),
    Remedy("no labels", "give the model no labels", _without_labels),
    Remedy("no attention mask", "leave the attention mask out", _without_mask),
    Remedy("batched experts", 'set_experts_implementation("batched_mm")', _experts_batched),
    Remedy("decoder ids", "decoder_input_ids too", _with_decoder_ids),
    Remedy("positions", "position_ids too", _with_positions),
    Remedy("of numbers", "in the step itself, of numbers", _of_numbers),
    Remedy("pictures in the step", "give the model image_hidden_states", parts.pictures_seen),
    Remedy("dense experts", "computes every expert for every token", parts.dense_experts),
    Remedy("no scaling of layers", "set rescale_every to 0", _set(rescale_every=0)),
    Remedy("parts infer", "alone infer: model.train()", _parts_infer),
    Remedy("buffers of numbers", "set them in the step as attributes", parts.buffers_of_numbers),
    Remedy("without boxes", "plan the parts that compute", parts.without_boxes),
    Remedy("inference", "plan inference", infers=True),
)
"""In the order in which they are looked for."""
