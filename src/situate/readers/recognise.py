"""The format of a file, recognised by its content and never by its name."""

from __future__ import annotations

from typing import Protocol

from situate.data.graph import Graph
from situate.errors import ReadError
from situate.files import strict_json
from situate.files.strict_json import Keys
from situate.readers import (
    chrome_trace,
    costgraph,
    dnn_partitioning,
    doppler,
    execution_trace,
    onnx,
    pipedream,
    situate_json,
    stg,
)


class Reader(Protocol):
    """The interface that the module of a format offers."""

    def recognises(self, data: bytes, keys: Keys) -> bool:
        """True if the content is of this format, even if a later part is broken.

        `keys` are those of its JSON object; empty if it is no JSON object.
        """

    def read(self, data: bytes, name: str) -> Graph:
        """The graph; `name` is its name if the format has none."""


READERS: dict[str, Reader] = {
    "situate": situate_json,
    "dnn-partitioning": dnn_partitioning,
    "pipedream": pipedream,
    "doppler": doppler,
    "stg": stg,
    "costgraph": costgraph,
    "onnx": onnx,
    "execution-trace": execution_trace,
    "chrome-trace": chrome_trace,
}
"""All formats of files, by the name that `Graph.source` has."""


PLAN = b'"situate-plan"'
"""A string in the first lines of every plan."""


def recognise(data: bytes) -> str:
    """The name of the format of `data`.

    Raises:
        ReadError: no reader knows it, or it is JSON that cannot be parsed.
    """
    keys = strict_json.top_level(data)
    for name, reader in READERS.items():
        if reader.recognises(data, keys):
            return name
    if PLAN in data[:4096]:
        raise ReadError("is a plan, not a model: give it to situate explain, export, run or verify")
    if "model_type" in keys:
        raise ReadError(
            "is the configuration of a language model: situate info, plan and convert read it"
        )
    raise ReadError(f"is in no format that situate reads; these are {', '.join(READERS)}")
