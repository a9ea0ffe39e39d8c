"""The whole list of configurations."""

from __future__ import annotations

import importlib.util

from benchmarks.corpus import audio, decoders, diffusion, encoders, multimodal, packages, vision
from benchmarks.corpus.configuration import Configuration

PARTS = (decoders, encoders, vision, audio, multimodal, packages, diffusion)


def configurations() -> list[Configuration]:
    """All of them, in the order in which they are tried."""
    return [configuration for part in PARTS for configuration in part.configurations()]


def missing(found: list[Configuration]) -> list[str]:
    """Packages that are not installed."""
    wanted = dict.fromkeys(configuration.package for configuration in found)
    return [package for package in wanted if importlib.util.find_spec(package) is None]
