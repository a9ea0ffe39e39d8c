"""Names of models: a file, a network of the zoo, or a function that builds one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.errors import ReadError, SituateError, nearest
from situate.validation import check

if TYPE_CHECKING:
    from situate.torch_capture import Captures, TracedStep

ONE_SIZE = (
    "a file holds a step of one size, and slices need it at theirs: give a network of the zoo, or "
    "package.module:function that builds the model"
)


def find_model(
    text: str | Path,
    optimizer: str | None = None,
    dims: Mapping[str, int] | None = None,
    fresh: bool = False,
    signed: bool = False,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
) -> Graph:
    """The graph that `text` names.

    Args:
        text: a file of any readable format, or two as `a.json+b.json` (a PyTorch execution trace
            and its Kineto trace); a network of the zoo such as `resnet50`, or
            `resnet50:inference`; or `package.module:function`, a function without arguments that
            returns a PyTorch model, its inputs and a loss; with `:inference` behind it without
            backward and update.
        optimizer: the update of a captured training step, such as `sgd` or `adam`.
        dims: sizes of the open dimensions of an ONNX file, as `read` takes them.
        fresh: capture a network of the zoo anew.
        signed: with the signatures that measured costs are looked up by, also where a graph
            without them comes with situate.
        slices: of the batch of a captured training step, as `situate.capture` takes them.
        recompute: modules of it that run their forward pass again, as `situate.capture` takes them.
        captures: what was captured before, so that the same model in several slices is built once.

    Raises:
        ReadError: the file cannot be read.
        SituateError: nothing of that name exists, or it takes no `optimizer` or `dims`.
    """
    text = os.fspath(text)
    check(text, str, "model")
    check(dims, dict | None, "dims")
    check_model(text)
    if is_file(text):
        return _read(text, optimizer, dims, slices, recompute)
    from situate import zoo

    if dims:
        raise SituateError(f"{text}: --dim is for ONNX files")
    if text.partition(":")[0] in zoo.names():
        return zoo.load(text, optimizer, fresh, signed, slices, recompute, captures)
    from situate.torch_capture import capture_function

    return capture_function(
        text, optimizer=optimizer, slices=slices, recompute=recompute, captures=captures
    )


def find_samples(text: str | Path, axes: Mapping[str, int | None], captures: Captures) -> int:
    """The samples of the batch of the training step that `text` names.

    Args:
        text: as `find_model` takes it.
        axes: by name of an input the dimension along which it is cut, as in `Slices`.
        captures: where the model is kept that is built for it.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: it is no step whose batch can be cut.
    """
    from situate import zoo
    from situate.torch_capture import INFERENCE, NO_UPDATE, check_installed
    from situate.torch_capture.function import current_directory, find_function
    from situate.zoo.networks import network

    text = os.fspath(text)
    if is_file(text):
        raise SituateError(f"{text}: {ONE_SIZE}")
    if text.endswith(INFERENCE):
        raise SituateError(f"{text}: {NO_UPDATE}")
    if text in zoo.names():
        found, _ = network(text)
        check_installed(*found.packages)
        return captures.samples(found.build, text, axes)
    check_installed()
    with current_directory():
        function, _ = find_function(text)
        return captures.samples(function, text, axes)


def trace_model(
    text: str, optimizer: str | None = None, slices: Slices | None = None
) -> TracedStep:
    """The training step that `text` names, traced for graphs with one module or another that runs
    again; arguments are those of `find_model`.

    Raises:
        SituateError: it is a file, or inference; otherwise as `find_model`.
    """
    check_model(text)
    if is_file(text):
        raise _captured_once(text)
    if text.endswith(":inference"):
        raise SituateError("recompute is of a step that trains: leave it out for inference")
    from situate.torch_capture import trace_step
    from situate.torch_capture.function import current_directory, find_function
    from situate.zoo.networks import NETWORKS

    if text in NETWORKS:
        found = NETWORKS[text]
        return trace_step(found.build, optimizer or found.optimizer, text, slices, found.packages)
    with current_directory():
        function, _ = find_function(text)
        return trace_step(function, optimizer or "sgd", text, slices)


def check_model(text: str) -> None:
    """
    Raises:
        SituateError: nothing of that name exists; a function is not looked for.
    """
    from situate import zoo

    if is_file(text) or text.partition(":")[0] in zoo.names():
        return
    _check_no_source(text)
    if not re.fullmatch(r"[\w.]+:\w+(:inference)?", text):
        raise _unknown(text)


def is_file(text: str) -> bool:
    """True if a model's text names a file, or a pair of them."""
    return (os.path.exists(text) and not os.path.isdir(text)) or _is_pair(text)


def _is_pair(text: str) -> bool:
    if "+" not in text:
        return False
    from situate.readers import pair

    return pair.files(text) is not None


def _read(
    path: str,
    optimizer: str | None,
    dims: Mapping[str, int] | None,
    slices: Slices | None,
    recompute: Sequence[str],
) -> Graph:
    from situate.readers import read

    if optimizer is not None:
        raise SituateError(f"{path}: a file holds its own update: leave --optimizer out")
    if slices is not None:
        raise SituateError(f"{path}: {ONE_SIZE}")
    if recompute:
        raise _captured_once(path)
    try:
        return read(path, dims=dims)
    except ReadError:
        if not path.endswith(".py"):
            raise
        raise ReadError(f"{path}: is Python source: {_of_module(path[:-3])}") from None


def _captured_once(path: str) -> SituateError:
    return SituateError(
        f"{path}: a file holds a step as it was captured, and recompute makes another of its "
        "model: give a network of the zoo, or package.module:function that builds the model"
    )


def _check_no_source(text: str) -> None:
    """
    Raises:
        SituateError: a function is looked for in a file of Python source, not in a module.
    """
    match = re.fullmatch(r"(.+?)(\.py)?:(\w+(?::inference)?)", text)
    if match is None or not (match[2] or os.sep in match[1]):
        return
    path = next((p for p in (match[1], match[1].replace(".", os.sep)) if _is_source(p)), None)
    if path is None:
        raise ReadError(f"{match[1]}.py: no such file")
    if not os.path.basename(path).isidentifier():
        raise SituateError(f"{path}.py: no module can be called so: rename it, such as mine.py")
    raise SituateError(f"{text}: a function is named by its module: write {_named(path, match[3])}")


def _is_source(path: str) -> bool:
    return os.path.isfile(f"{path}.py")


def _of_module(path: str) -> str:
    """A hint for the name of a function of a module."""
    hint = "give a function of it that returns a model, inputs and loss"
    return f"{hint}: {_named(path, 'FUNCTION')}"


def _named(path: str, function: str) -> str:
    """A function of a module, which is looked up from the current directory."""
    found = os.path.relpath(path)
    folder, name = os.path.split(found)
    if all(part.isidentifier() for part in folder.split(os.sep)):
        folder, name = "", found
    where = f", from {folder}" if folder else ""
    return f"{name.replace(os.sep, '.')}:{function}{where}"


def _unknown(text: str) -> SituateError:
    from situate import zoo

    if re.fullmatch(r"[\w.]+", text) and _is_source(text.replace(".", os.sep)):
        return SituateError(f"{text}: is a module: {_of_module(text)}")
    if os.path.isdir(text):
        return ReadError(f"{text}: is a directory")
    if os.sep in text or "." in text:
        return ReadError(f"{text}: no such file")
    return SituateError(
        f"no file, network of the zoo or package.module:function {text!r}"
        f"{nearest(text, zoo.names())}"
    )
