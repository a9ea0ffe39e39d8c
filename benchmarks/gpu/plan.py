"""The stages, in the order in which they run: prerequisites first, the longest last.

This module imports nothing that a bare machine lacks, so networks are named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.gpu import build
from benchmarks.gpu.stages import Stage

NETWORKS = ["cifar_cnn", "resnet50", "inception_v3", "rnnlm", "gpt2", "bert", "vit", "resnet101"]

PAIRS = ["cifar_cnn", "chain", "resnet50"]
"""Networks that draw nothing: from the same seed a GPU draws other numbers than a CPU."""

DTYPES = ("float32", "bfloat16")

environment = build.environment


@dataclass(frozen=True)
class Phase:
    """Stages that may run side by side, at most `jobs` at once."""

    stages: tuple[Stage, ...]
    jobs: int = 1


def phases(networks: Sequence[str], pairs: Sequence[str], jobs: int) -> list[Phase]:
    """All stages: the build; the machine; tests that know CUDA; rates; networks; both devices; the
    other tests."""
    first = (
        Stage("build", "build", prepare=180.0),
        Stage("machine", "machine"),
        Stage("suite.cuda", "suite", ("cuda",), measure=75.0),
        Stage("links", "links", measure=40.0),
        Stage("launches", "launches", measure=30.0),
        Stage("classes", "classes", measure=45.0),
    )
    alone = [
        Stage(f"networks.{name}.{dtype}", "networks", (name, dtype), prepare=90.0, measure=45.0)
        for name in networks
        for dtype in DTYPES
    ]
    both = [Stage(f"pair.{name}", "pair", (name,), measure=75.0) for name in pairs]
    rest = Stage("suite.rest", "suite", ("not cuda",), measure=180.0)
    return [Phase(first), Phase(tuple(both[:1])), Phase(tuple(alone), jobs),
            Phase(tuple(both[1:])), Phase((rest,))]  # fmt: skip


def selection(phases: Sequence[Phase], beginnings: Sequence[str] | None) -> list[Phase]:
    """The stages whose names begin so, all if none are named."""
    if beginnings is None:
        return list(phases)
    return [
        replace(
            phase, stages=tuple(s for s in phase.stages if s.name.startswith(tuple(beginnings)))
        )
        for phase in phases
    ]
