"""The papers' networks and a few modern ones; docs/zoo.md describes them."""

from situate.zoo.loading import load
from situate.zoo.networks import build, names
from situate.zoo.placement import expert

__all__ = ["build", "expert", "load", "names"]
