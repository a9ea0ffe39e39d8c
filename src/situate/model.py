"""Graphs by name: a file, a network of the zoo, or a function that builds a model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from situate.data.capture_options import CaptureOptions
from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.errors import ReadError, SituateError, nearest
from situate.validation import check

if TYPE_CHECKING:
    from situate.torch_capture import Captures, TracedStep

NEEDS_MODEL = "give a network of the zoo, or package.module:function that builds the model"


def find_model(
    text: str | Path,
    optimizer: str | None = None,
    dims: Mapping[str, int] | None = None,
    fresh: bool = False,
    signed: bool = False,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
    captures: Captures | None = None,
) -> Graph:
    """The graph that `text` names.

    Args:
        text: a file of any readable format, or two as `a.json+b.json` (a PyTorch execution trace
            and its Kineto trace); a network of the zoo such as `resnet50`, or
            `resnet50:inference`; or `package.module:function`, a function without arguments that
            returns a PyTorch model, its inputs and a loss. Add `:inference` to the function for
            the forward pass alone.
        optimizer: the update of a captured training step, such as `sgd` or `adam`.
        dims: sizes of the open dimensions of an ONNX file, as `read` takes them.
        fresh: capture a network of the zoo anew.
        signed: include the signatures that measured costs are looked up by. Packaged graphs lack
            them and are captured again.
        slices: how to cut the batch of a training step, as `situate.capture` takes them.
        recompute: modules that run their forward pass again, as `situate.capture` takes them.
        cuts: of ops into parts, as `situate.capture` takes them.
        captures: earlier captures of the same model, which is then built only once.

    Raises:
        ReadError: the file cannot be read.
        SituateError: nothing has that name, or it takes no `optimizer` or `dims`.
    """
    text = os.fspath(text)
    check(text, str, "model")
    options = CaptureOptions(optimizer, dims, fresh, signed, slices, recompute, cuts)
    return load_graph(text, options, captures)


def load_graph(text: str, options: CaptureOptions, captures: Captures | None = None) -> Graph:
    """The graph that `text` names; arguments and errors are those of `find_model`."""
    check_model(text)
    if is_file(text):
        return _read_file(text, options)
    from situate import zoo
    from situate.zoo.loading import load_network

    if options.dims:
        raise SituateError(f"{text}: --dim is for ONNX files")
    if text.partition(":")[0] in zoo.names():
        return load_network(text, options, captures)
    from situate.torch_capture import Captures, capture_function

    return capture_function(
        text,
        optimizer=options.optimizer,
        slices=options.slices,
        recompute=options.recompute,
        cuts=options.cuts,
        captures=captures or Captures(options.slices is None or options.check_slices),
    )


def count_samples(text: str | Path, axes: Mapping[str, int | None], captures: Captures) -> int:
    """The number of samples in the batch of the training step that `text` names.

    Args:
        text: as `find_model` takes it.
        axes: by input name, the dimension along which the input is cut, as in `Slices`.
        captures: keeps the model that is built.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: the batch cannot be cut.
    """
    from situate import zoo
    from situate.torch_capture import INFERENCE, NO_UPDATE, check_installed
    from situate.torch_capture.function import current_directory, find_function
    from situate.zoo.networks import network

    text = os.fspath(text)
    if is_file(text):
        raise _one_size(text)
    if text.endswith(INFERENCE):
        raise SituateError(f"{text}: {NO_UPDATE}")
    if text in zoo.names():
        entry, _ = network(text)
        check_installed(*entry.packages)
        return captures.samples(entry.build, text, axes)
    check_installed()
    with current_directory():
        function, _ = find_function(text)
        return captures.samples(function, text, axes)


def trace_model(
    text: str,
    optimizer: str | None = None,
    slices: Slices | None = None,
    change: Literal["recompute", "cuts"] = "recompute",
) -> TracedStep:
    """A trace of the step that `text` names, from which graphs with different modules that run
    again, or with different cuts, are made. Arguments are those of `find_model`.

    Args:
        change: of the step, in errors. Recompute is of steps that train.

    Raises:
        SituateError: `text` names a file, or inference for recompute; otherwise as `find_model`.
    """
    check_model(text)
    if is_file(text):
        raise _no_recompute(text, "recompute changes" if change == "recompute" else "cuts change")
    training = not text.endswith(":inference")
    if not training and change == "recompute":
        raise SituateError("recompute is of a step that trains: leave it out for inference")
    base = text.removesuffix(":inference")
    from situate.torch_capture import trace_step
    from situate.torch_capture.function import current_directory, find_function
    from situate.zoo.networks import NETWORKS

    if base in NETWORKS:
        entry = NETWORKS[base]
        update = optimizer or entry.optimizer
        return trace_step(entry.build, update, text, slices, entry.packages, training)
    with current_directory():
        function, _ = find_function(base)
        return trace_step(function, optimizer or "sgd", text, slices, training=training)


def check_model(text: str) -> None:
    """Check a model's name. Functions are imported later.

    Raises:
        SituateError: nothing has that name.
    """
    from situate import zoo

    if is_file(text) or text.partition(":")[0] in zoo.names():
        return
    _check_module_name(text)
    if not re.fullmatch(r"[\w.]+:\w+(:inference)?", text):
        raise _unknown(text)


def is_file(text: str) -> bool:
    """True if `text` names a file, or a pair of files."""
    return (os.path.exists(text) and not os.path.isdir(text)) or _is_pair(text)


def _is_pair(text: str) -> bool:
    if "+" not in text:
        return False
    from situate.readers import pair

    return pair.files(text) is not None


def _read_file(path: str, options: CaptureOptions) -> Graph:
    from situate.readers import read

    if options.optimizer is not None:
        raise SituateError(f"{path}: a file holds its own update: leave --optimizer out")
    if options.slices is not None:
        raise _one_size(path)
    if options.recompute:
        raise _no_recompute(path)
    if options.cuts is not None:
        raise _no_recompute(path, "cuts change")
    try:
        return read(path, dims=options.dims)
    except ReadError:
        if not path.endswith(".py"):
            raise
        raise ReadError(f"{path}: is Python source: {_function_hint(path[:-3])}") from None


def _one_size(path: str) -> SituateError:
    return SituateError(
        f"{path}: a file holds a step of one size, and slices need it at theirs: {NEEDS_MODEL}"
    )


def _no_recompute(path: str, change: str = "recompute changes") -> SituateError:
    return SituateError(
        f"{path}: a file holds a step as it was captured, and {change} the step: {NEEDS_MODEL}"
    )


def _check_module_name(text: str) -> None:
    """
    Raises:
        SituateError: the function is named by a source file in place of a module.
    """
    match = re.fullmatch(r"(.+?)(\.py)?:(\w+(?::inference)?)", text)
    if match is None or not (match[2] or os.sep in match[1]):
        return
    path = next((p for p in (match[1], match[1].replace(".", os.sep)) if _is_source(p)), None)
    if path is None:
        raise ReadError(f"{match[1]}.py: no such file")
    if not os.path.basename(path).isidentifier():
        raise SituateError(f"{path}.py: no module can have that name: rename it, such as mine.py")
    raise SituateError(
        f"{text}: name a function by its module: write {_module_name(path, match[3])}"
    )


def _is_source(path: str) -> bool:
    return os.path.isfile(f"{path}.py")


def _function_hint(path: str) -> str:
    """The way to name a function of a module."""
    return (
        "give a function in it that returns a model, inputs and loss: "
        f"{_module_name(path, 'FUNCTION')}"
    )


def _module_name(path: str, function: str) -> str:
    """The name of a function by its module, relative to the current directory."""
    relative = os.path.relpath(path)
    folder, name = os.path.split(relative)
    if all(part.isidentifier() for part in folder.split(os.sep)):
        folder, name = "", relative
    where = f", from {folder}" if folder else ""
    return f"{name.replace(os.sep, '.')}:{function}{where}"


def _unknown(text: str) -> SituateError:
    from situate import zoo

    if re.fullmatch(r"[\w.]+", text) and _is_source(text.replace(".", os.sep)):
        return SituateError(f"{text}: is a module: {_function_hint(text)}")
    if os.path.isdir(text):
        return ReadError(f"{text}: is a directory")
    if os.sep in text or "." in text:
        return ReadError(f"{text}: no such file")
    return SituateError(
        f"no file, network of the zoo or package.module:function {text!r}"
        f"{nearest(text, zoo.names())}"
    )
