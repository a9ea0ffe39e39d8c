"""Remedies in the messages of the ONNX reader, followed."""

from __future__ import annotations

import re
import shlex

from situate.cli.step_options import parse_dims
from situate.data.graph import Graph
from situate.readers import onnx


def sizes(message: str, size: int = 3) -> dict[str, int]:
    """The `--dim` options in a message, with this size, as the command line reads them."""
    options = re.findall(r"""--dim ((?:'[^']*'|"[^"]*"|[^\s'",;])+)""", message)
    return parse_dims(shlex.split(" ".join(options).replace("SIZE", str(size))))


def warned(data: bytes, about: str) -> str:
    """The one warning of a model that is about this."""
    (warning,) = (warning for warning in onnx.read(data, "").warnings if about in warning)
    return warning


def read(data: bytes, **dims: int) -> Graph:
    """The graph of a model, which is read without warnings."""
    graph = onnx.read(data, "", dims)
    assert not graph.warnings
    return graph


def work(data: bytes, kind: str, **dims: int) -> int:
    """FLOPs of all ops of a kind in a model that is read without warnings."""
    return sum(op.flops for op in read(data, **dims).ops if op.kind == f"onnx.{kind}")
