"""A worker that does not fit the command is refused with its host's name."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.cluster import Cluster, Device, Link  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.evaluators.hardware import per_worker  # noqa: E402
from situate.evaluators.hardware.per_worker import MachinePerWorker, required_hardware  # noqa: E402
from situate.evaluators.steps import Steps  # noqa: E402
from situate.evaluators.workers.workers import Opens, Unfit  # noqa: E402
from situate.host.machine import cpu_name  # noqa: E402
from tests.solvers.families import chain  # noqa: E402

CPU = Device("cpu", kind="cpu", threads=1)


def machine(device: Device = CPU) -> MachinePerWorker:
    problem = Problem(chain(3), Cluster("c", (device,)))
    placement = np.zeros(3, np.int32)
    return MachinePerWorker(problem, "rnn", None, 60.0, None, placement, torch.__version__)


def refused(machine_given: MachinePerWorker, words: str) -> None:
    with pytest.raises(SituateError, match=rf"^worker on '.+': {words}"):
        machine_given.open()


# Each check before the worker reserves its devices.
def test_another_pytorch_is_refused() -> None:
    refused(replace(machine(), torch="0.4"), re.escape(f"has PyTorch {torch.__version__}, and the"))


def test_another_processor_than_the_clusters_is_refused() -> None:
    other = msgspec.structs.replace(CPU, model="Z80 (1 thread)")
    refused(machine(other), "device 'cpu' of cluster 'c' is a 'Z80', and the processor here a")


@pytest.mark.parametrize("model", ["", "some processor", f"{cpu_name()} (2 threads)"])
def test_a_cpu_without_a_discovered_model_is_accepted(model: str) -> None:
    per_worker._check_processor(Cluster("c", (msgspec.structs.replace(CPU, model=model),)))


def test_a_worker_without_cores_is_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(cores: int, gpus: int) -> None:
        raise Unfit(f"found no {cores} cores")

    monkeypatch.setattr(per_worker, "Reservation", none)
    with pytest.raises(Unfit, match=r"^found no 1 cores$"):
        machine().open()


# Copies to workers, and the hardware that each needs.
def test_it_is_copied_before_it_is_opened() -> None:
    copied = pickle.loads(pickle.dumps(machine()))  # noqa: S301
    assert isinstance(copied, Opens)
    assert copied.name == machine().name
    assert "3 to 10 steps" in copied.name
    assert "mean of 10 steps after 1" in replace(copied, steps=Steps()).name


def test_a_core_for_each_thread_and_each_gpu() -> None:
    gpus = tuple(Device(f"gpu{i}") for i in range(2))
    cpu = msgspec.structs.replace(CPU, threads=4)
    assert required_hardware(Cluster("c", (*gpus, cpu), (Link("*", "*", 1.0),))) == (6, 2)
