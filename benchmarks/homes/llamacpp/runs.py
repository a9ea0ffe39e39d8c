"""Runs of llama.cpp with situate's flags, and their reports beside situate's predictions."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.homes.llamacpp.logs import Report, read_report
from benchmarks.homes.llamacpp.servers import HOST, end
from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.compute_buffers import Build
from situate.language.layout import HOST as HOST_PLACE
from situate.language.layout import Layout
from situate.language.memory import device_memory, is_pipelined
from situate.language.model import LanguageModel
from situate.language.planning.command_lines import flags

MIB = 2**20
RUN_SECONDS = 300.0
READY = "listening on http"
LAST_LINES = 5


@dataclass(frozen=True)
class Buffer:
    """A buffer of a run in MiB, as predicted and as llama.cpp reports it."""

    kind: str
    device: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """MiB by which the prediction is too high."""
        return self.predicted - self.measured


def rpc_flags(
    model: LanguageModel, layout: Layout, options: CacheOptions, endpoints: Sequence[str]
) -> list[str]:
    """situate's flags, with the names of RPC devices in place of the GPUs'."""
    words = flags(layout, options, model, [f"RPC{i}" for i in range(len(endpoints))])
    for i, word in enumerate(words):
        if i and words[i - 1] == "-ot":
            words[i] = re.sub(
                r"=RPC(\d+)$", lambda match: f"=RPC0[{endpoints[int(match[1])]}]", word
            )
    return ["--rpc", ",".join(endpoints), *words]


def run_server(programs: Path, path: Path, words: Sequence[str], port: int) -> Report:
    """The report of a server that loads a model, warms up and is ended again.

    Raises:
        SituateError: it refuses the flags, fails or takes too long.
    """
    command = [
        str(programs / "llama-server"),
        "-m",
        str(path),
        *words,
        "-v",
        "-fit",
        "off",
        "-lm",
        "none",
    ]
    command += ["--host", HOST, "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    timer = threading.Timer(RUN_SECONDS, process.kill)
    timer.start()
    lines: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if READY in line:
                return read_report(lines)
    finally:
        timer.cancel()
        end([process])
    last = " | ".join(lines[-LAST_LINES:])
    raise SituateError(f"llama-server {' '.join(words)}: does not start: {last}")


def predicted_buffers(
    model: LanguageModel, layout: Layout, options: CacheOptions, names: Sequence[str], build: Build
) -> dict[tuple[str, str], float]:
    """MiB by kind and device that situate predicts; `names` are those of the devices."""
    parts = device_memory(model, layout, options, len(names), build=build)
    return {
        (kind, name): size / MIB
        for name, part in zip((*names, "host"), parts, strict=True)
        for kind, size in (
            ("model", part.weights),
            ("KV", part.cache),
            ("compute", part.compute),
            ("output", part.output),
        )
    }


def rpc_layout(layout: Layout) -> Layout:
    """A layout as RPC devices run it, which never compute with the host's weights."""
    return replace(layout, op_offload=False)


def server_build(layout: Layout, options: CacheOptions) -> Build:
    """llama-server on RPC devices: logits of one token a slot, caches read as they are."""
    return Build(pipeline=is_pipelined(layout), outputs=options.slots, converts=False)


def compared(
    predicted: dict[tuple[str, str], float], report: Report, device_of: dict[str, str]
) -> list[Buffer]:
    """Buffers that either side has.

    Args:
        predicted: MiB by kind and device.
        report: of the run.
        device_of: situate's name of a device by llama.cpp's.
    """
    measured: dict[tuple[str, str], float] = {}
    for (kind, name), size in report.buffers.items():
        kind = "KV" if kind == "RS" else kind
        key = (kind, device_of.get(name, name))
        measured[key] = measured.get(key, 0.0) + size
    return [
        Buffer(kind, device, predicted.get((kind, device), 0.0), measured.get((kind, device), 0.0))
        for kind, device in sorted({*predicted, *measured})
        if predicted.get((kind, device)) or measured.get((kind, device))
    ]


def layers_agree(layout: Layout, report: Report, names: Sequence[str]) -> bool:
    """True if every layer is on the device that the layout names."""
    places = ["host" if place == HOST_PLACE else names[place] for place in layout.layers]
    return report.layers[: len(places)] == places
