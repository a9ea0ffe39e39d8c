"""The process of a stage: `python -m benchmarks.gpu.process MODULE`.

It calls the function `measure` of `benchmarks.gpu.MODULE` (of MODULE, if its name has a dot) with a
`Context`. Every figure that the function notes is in the file at once, so that none is
lost when the process ends.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.gpu.stages import ASK, trim

Value = TypeVar("Value")


@dataclass
class Context:
    """The options of a stage, its figures so far, and its turn on the device.

    Attributes:
        device: PyTorch's word for it; `cpu` stands in for a GPU in a rehearsal.
        tiny: sizes of a rehearsal.
        wheels: folder of the wheels that travel.
        site: folder that is installed into.
        arguments: of this stage.
        figures: by name, all noted so far.
        failures: the parts that failed, with their errors.
    """

    device: str
    tiny: bool
    seed: int
    wheels: Path
    site: Path
    arguments: tuple[str, ...]
    path: Path | None = None
    channel: socket.socket | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def on_gpu(self) -> bool:
        """True if the device is not the stand-in."""
        return self.device != "cpu"

    def note(self, **figures: Any) -> None:
        """Add figures to those that the report will hold."""
        self.figures |= figures
        self.write()

    def write(self, error: str = "") -> None:
        """Write the figures and the error; the file is whole at every moment."""
        if self.path is not None:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps({"figures": plain(self.figures), "error": error}))
            os.replace(part, self.path)

    def attempt(self, part: str, call: Callable[[], Value]) -> Value | None:
        """The result of a part of the stage; None if it fails, so that the next part can run."""
        try:
            return call()
        except Exception:
            text = traceback.format_exc()
            print(text, file=sys.stderr)
            self.failures.append(f"{part}: {trim(text)}")
            return None

    def take_device(self) -> None:
        """Wait until no other stage measures; from here on this one has the device to itself."""
        if self.channel is not None:
            self.channel.sendall(ASK)
            self.channel.recv(1)


def plain(value: Any) -> Any:
    """The value as JSON holds it: numbers of six digits, None for those that are not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if hasattr(value, "__float__"):
        number = float(value)
        return float(f"{number:.6g}") if math.isfinite(number) else None
    return str(value)


def main(arguments: list[str] | None = None) -> int:
    """Run the stage; its error goes into the file of its figures."""
    options = vars(_options(arguments))
    module, channel = options.pop("module"), options.pop("channel")
    context = Context(path=options.pop("figures"), **options)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # of a crash the log is enough
    if channel is not None:
        context.channel = socket.socket(fileno=channel)
        os.set_inheritable(channel, False)  # so that its end is this process's
    try:
        name = module if "." in module else f"benchmarks.gpu.{module}"
        importlib.import_module(name).measure(context)
    except BaseException:
        text = traceback.format_exc()
        print(text, file=sys.stderr)
        context.write(trim(text))
        return 1
    context.write(trim("\n".join(context.failures)))
    return 1 if context.failures else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--channel", type=int)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wheels", type=Path, default=Path("build/gpu/wheels"))
    parser.add_argument("--site", type=Path, default=Path("build/gpu/site"))
    parser.add_argument("module")
    parser.add_argument("arguments", nargs="*", default=())
    options = parser.parse_args(arguments)
    options.arguments = tuple(options.arguments)
    return options


if __name__ == "__main__":
    sys.exit(main())
