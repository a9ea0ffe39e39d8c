"""Trained weights of REGAL's policy, with their purpose and origin, and inference with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Objective, Problem
from situate.errors import ReadError, SituateError, plural
from situate.files import safetensors
from situate.files.contents import one_line
from situate.files.strict_json import decode
from situate.policies.arithmetic import arithmetic
from situate.policies.graph_network import GraphBatch
from situate.policies.proposal_policy import ProposalPolicy
from situate.solvers.evolutionary.regal.features import EDGE_FEATURES, Encoding, node_features
from situate.solvers.evolutionary.regal.settings import RegalSettings

VERSION = 2

MOST_BYTES = 2**24
"""Largest size of a weights file. Trained weights take less than 2^20 bytes."""

MOST_WIDTH, MOST_ROUNDS, MOST_LEVELS, MOST_DEVICES = 1024, 256, 1024, 64


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The purpose and origin of weights, stored in their file.

    Attributes:
        objective, devices: of the problems that the weights are for.
        settings: of the policy and its training.
        data: SHA-256 of the graphs that trained the policy, in hexadecimal.
        command: that trained it.
        situate: version of situate that trained it.
        steps: of training so far, see `best_steps`.
        curve: (steps, mean reward since the point before, mean validation reward or None).
    """

    objective: Objective
    devices: int
    settings: RegalSettings
    data: str
    command: str
    situate: str
    steps: int
    curve: list[tuple[int, float, float | None]] = []
    format: Literal["situate-regal"] = "situate-regal"
    version: int = VERSION

    @property
    def best_steps(self) -> int:
        """Number of steps of training of these parameters.

        It is the last point with the best validation reward; without validation, all steps.
        """
        validated = [(reward, steps) for steps, _, reward in self.curve if reward is not None]
        return max(validated)[1] if validated else self.steps


def new_policy(
    objective: Objective, devices: int, settings: RegalSettings, generator: torch.Generator
) -> ProposalPolicy:
    """An untrained policy."""
    features = features_of(objective, devices, settings)
    return ProposalPolicy(features, settings.proposed.choices(devices), settings.shape, generator)


def features_of(objective: Objective, devices: int, settings: RegalSettings) -> tuple[int, int]:
    """The numbers of features of an op and of an edge."""
    return node_features(objective, devices, settings.places), EDGE_FEATURES


def write(path: str | Path, policy: ProposalPolicy, about: About) -> None:
    """Write the weights whole or not at all.

    Raises:
        SituateError: the file cannot be written.
    """
    arrays = {name: parameter.numpy() for name, parameter in policy.state_dict().items()}
    safetensors.write(path, arrays, {"situate": msgspec.json.encode(about).decode()})


def read(path: str | Path) -> tuple[ProposalPolicy, About]:
    """The policy of a file, and its purpose and origin.

    Raises:
        ReadError: the file cannot be read or is no safetensors file; its weights are not REGAL's,
            of another version, or of other shapes than their settings.
    """
    arrays, texts = safetensors.read(path, MOST_BYTES)
    about = _about(path, texts)
    # The file overwrites the initial parameters, so any seed will do.
    policy = new_policy(
        about.objective, about.devices, about.settings, torch.Generator().manual_seed(0)
    )
    _check_shapes(path, arrays, policy)
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    return policy, about


def check_for(path: str | Path, about: About, objective: str, devices: int) -> None:
    """
    Raises:
        SituateError: the weights are for another objective or another number of devices.
    """
    if about.objective != objective:
        raise SituateError(
            f"{path}: the weights were trained for {about.objective}, not for {objective}: give "
            f"others, or plan for {about.objective}"
        )
    if about.devices != devices:
        raise SituateError(
            f"{path}: the weights were trained for {plural(about.devices, 'device')}, not for "
            f"{devices}: train others with situate train regal --cluster"
        )


def _about(path: str | Path, texts: Mapping[str, str]) -> About:
    if "situate" not in texts:
        raise ReadError(f"{path}: holds no weights of REGAL: situate train regal makes some")
    try:
        about = decode(texts["situate"].encode(), About)
    except ReadError as error:
        raise ReadError(one_line(f"{path}: its description: {error}")) from None
    if about.version != VERSION:
        raise ReadError(
            f"{path}: weights of version {about.version}, and this situate reads {VERSION}: "
            f"train others with situate train regal"
        )
    shape, proposed = about.settings.shape, about.settings.proposed
    levels = (
        proposed.placement,
        proposed.scheduling,
        proposed.transfers,
        proposed.crossover,
    )
    # Checked before a policy is made, because a damaged file may ask for any size.
    sizes = {
        "width": (shape.width, 1, MOST_WIDTH),
        "rounds": (shape.rounds, 0, MOST_ROUNDS),
        "devices": (about.devices, 1, MOST_DEVICES),
        "levels": (min(levels), 0, MOST_LEVELS),
        "most levels": (max(levels), 1, MOST_LEVELS),
    }
    for name, (size, least, most) in sizes.items():
        if not least <= size <= most:
            raise ReadError(f"{path}: {name}: must be between {least} and {most}, got {size}")
    return about


def _check_shapes(
    path: str | Path, arrays: Mapping[str, NDArray[np.float32]], policy: ProposalPolicy
) -> None:
    expected = {name: tuple(parameter.shape) for name, parameter in policy.state_dict().items()}
    for name in sorted(arrays.keys() ^ expected.keys()):
        which = "lacks" if name in expected else "has an unknown"
        raise ReadError(f"{path}: {which} tensor {one_line(name)!r}")
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ReadError(
                f"{path}: tensor {name!r} is {arrays[name].shape}, and its settings say {shape}"
            )


class TrainedPolicy:
    """The policy of a file of weights, checked against a problem.

    Attributes:
        settings: of the policy and its training.

    Raises:
        SituateError: see `read` and `check_for`.
    """

    def __init__(self, path: Path, problem: Problem) -> None:
        self._policy, about = read(path)
        check_for(path, about, problem.objective, problem.d)
        self.settings = about.settings

    def actions(self, encoded: Encoding, seed: int) -> Ints:
        """(n, c) the category of each choice at each op, drawn from the policy."""
        with arithmetic():
            generator = torch.Generator().manual_seed(seed)
            [sample] = self._policy.sample(batch_of([encoded]), 1, generator)
        actions: Ints = sample.numpy()
        return actions


def batch_of(encodings: Sequence[Encoding]) -> GraphBatch:
    """A batch of problems, with their ops numbered consecutively."""
    # One graph of disjoint parts: with shifted ops, no message crosses from problem to problem.
    sizes = [len(encoding.nodes) for encoding in encodings]
    begin = np.cumsum([0, *sizes[:-1]])
    source, target = (
        np.concatenate(
            [getattr(encoding, of) + at for encoding, at in zip(encodings, begin, strict=True)]
        )
        for of in ("source", "target")
    )
    return GraphBatch(
        torch.from_numpy(np.concatenate([encoding.nodes for encoding in encodings])),
        torch.from_numpy(np.concatenate([encoding.edges for encoding in encodings])),
        torch.from_numpy(source),
        torch.from_numpy(target),
        torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
        torch.from_numpy(np.concatenate([encoding.place for encoding in encodings])),
        len(sizes),
    )
