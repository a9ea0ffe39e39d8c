"""A PyTorch model to run or to measure, built on the CPU and captured as a program."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situate import zoo
from situate.data.cuts import Cuts
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.errors import SituateError, nearest
from situate.runtime.programs.program import Program, capture_program
from situate.torch_capture import INFERENCE, cache, check_installed
from situate.torch_capture.build import Build, build_real
from situate.torch_capture.cache import keep
from situate.torch_capture.function import current_directory, find_function
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.updates.recipes import cast_model
from situate.zoo.loading import network_key
from situate.zoo.networks import network

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Subject:
    """A model, its inputs, and its step.

    Attributes:
        inputs: the tensors among the inputs, in order.
        caller_inputs: the inputs as built: a tuple, or a dict by name.
        program: the captured step.
    """

    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    caller_inputs: Any
    program: Program


def find_subject(
    text: str,
    optimizer: str | None = None,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> Subject:
    """Build and capture a network of the zoo or `package.module:function`.

    The captured graph is cached for later planning.

    Args:
        text: its name; `:inference` at the end captures the forward pass alone.
        optimizer: of the training step.
        slices: of the training step's batch.
        recompute: modules whose forward pass runs again.
        cuts: of its ops.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: unknown name, an optimizer for inference, or a failure to build or capture.
    """
    training = not text.endswith(INFERENCE)
    if not training and optimizer is not None:
        raise SituateError(f"{text}: inference has no update: leave the optimizer out")
    update_rule(optimizer or "sgd")
    base = text.removesuffix(INFERENCE)
    if base in zoo.names():
        network_entry, _ = network(base)
        check_installed(*network_entry.packages)
        update = optimizer or network_entry.optimizer
        subject = _subject(text, network_entry.build, training, update, slices, recompute, cuts)
        keep(
            network_key(text, network_entry, update, slices, recompute, cuts), subject.program.graph
        )
        return subject
    if not re.fullmatch(r"[\w.]+:\w+", base):
        raise SituateError(
            f"{text!r} is no PyTorch model that could run: give a network of the zoo or "
            f"package.module:function{nearest(base, zoo.names())}"
        )
    check_installed()
    with current_directory():
        loading = cache.Loading()
        function, module = find_function(base)
        subject = _subject(text, function, training, optimizer or "sgd", slices, recompute, cuts)
        loading.keep(
            text, optimizer or "sgd", module, subject.program.graph, slices, recompute, cuts
        )
        return subject


def _subject(
    name: str,
    build: Build,
    training: bool,
    optimizer: str,
    slices: Slices | None,
    recompute: Sequence[str],
    cuts: Cuts | None,
) -> Subject:
    named_devices = NamedDevices()
    # Output of the user's program must not mix with the command's results.
    with contextlib.redirect_stdout(sys.stderr):
        model, inputs, loss = build_real(build, name, named_devices)
        recipe = update_rule(optimizer).recipe
        if recipe is not None and recipe.casts_model:
            cast_model(model)
        program = capture_program(
            model,
            inputs,
            loss,
            training=training,
            optimizer=optimizer,
            name=name,
            named_devices=named_devices,
            slices=slices,
            recompute=recompute,
            cuts=cuts,
        )
    caller_inputs = inputs if isinstance(inputs, (tuple, list, Mapping)) else (inputs,)
    return Subject(model, program.separate(inputs), caller_inputs, program)
