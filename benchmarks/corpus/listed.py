"""The whole list of configurations."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import warnings

import torch

import situate
from benchmarks.corpus import (
    audio,
    decoders,
    diffusion,
    encoders,
    multimodal,
    operators,
    packages,
    vision,
)
from benchmarks.corpus.configuration import Built, Configuration

PARTS = (decoders, encoders, vision, audio, multimodal, packages, diffusion)


def configurations() -> list[Configuration]:
    """All of them, in the order in which they are tried."""
    return [configuration for part in PARTS for configuration in part.configurations()]


def missing(configurations: list[Configuration]) -> list[str]:
    """Packages that are not installed."""
    wanted = dict.fromkeys(configuration.package for configuration in configurations)
    return [package for package in wanted if importlib.util.find_spec(package) is None]


def load(configurations: list[Configuration], absent: list[str]) -> None:
    """Import the packages of configurations that are installed, once for all processes that are
    forked from this one."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ["HF_HUB_OFFLINE"] = "1"
    operators.define()
    for package in {configuration.package for configuration in configurations} - set(absent):
        importlib.import_module(package)
    situate.capture(_smallest)  # which imports what every capture needs


def _smallest() -> Built:
    return torch.nn.Linear(1, 1), (torch.ones(1),), lambda model, x: model(x).sum()
