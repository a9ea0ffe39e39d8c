"""Exports to torch.distributed.tensor, run on two and four processes."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import situate  # noqa: E402
from situate.data.cuts import parse_cuts  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.writers.dtensor import write  # noqa: E402
from tests.writers.cuts.meshes import BUILDS, run_rank  # noqa: E402
from tests.writers.cuts.planned import plan  # noqa: E402

TOLERANCE = {"rtol": 1e-9, "atol": 1e-12}
"""Of loss and gradients in double precision, since sums are in another order."""

MEGATRON = ("heads", "features", "vocabulary")

CASES = {
    2: {
        "perceptron": ("perceptron", ("features=2",), None),
        "columns": ("decoder", tuple(f"{kind}=2" for kind in MEGATRON), None),
        "sequence": ("decoder", tuple(f"{kind}=2" for kind in (*MEGATRON, "sequence")), None),
        "alone": ("decoder", ("sequence=2",), None),
        "no_heads": ("decoder", ("features=2", "sequence=2"), None),
        "uneven": ("untied", ("features=2", "vocabulary=2"), None),
        "llama": ("llama", tuple(f"{kind}=2" for kind in (*MEGATRON, "sequence")), None),
        "llama_columns": ("llama", tuple(f"{kind}=2" for kind in MEGATRON), None),
    },
    4: {
        "quarters": ("decoder", tuple(f"{kind}=4" for kind in MEGATRON), None),
        "spread": ("decoder", ("heads=2", "features=2", "sequence=2"), Slices((1, 1, 1, 1))),
        "copies": ("decoder", ("features=2",), Slices((2, 2), replicas=(1, 1))),
    },
}
"""By number of processes and name: the model, its cuts and its slices."""


@pytest.fixture(scope="module", params=CASES)
def results(request, tmp_path_factory):
    """The losses and gradients of all exports that run on as many processes."""
    count, folder = request.param, tmp_path_factory.mktemp("exports")
    files = []
    for name, (build, cuts, slices) in CASES[count].items():
        if build == "llama":
            pytest.importorskip("transformers")
        graph = situate.capture(BUILDS[build], cuts=parse_cuts(cuts), slices=slices)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(*plan(graph, count), folder / f"{name}.py")
        files.append((f"{name}.py", build, len(slices.shares) // 2 if slices else 0))
    torch.multiprocessing.spawn(run_rank, (str(folder), count, files), nprocs=count)
    return folder, CASES[count]


def test_a_step_over_a_mesh_has_the_loss_and_the_gradients_of_the_uncut_model(results):
    folder, cases = results
    for name, (build, _, _) in cases.items():
        model, inputs, loss = BUILDS[build]()
        expected = loss(model, *inputs)
        expected.backward()
        value, gradients = torch.load(folder / f"{name}.py.result")
        torch.testing.assert_close(value, expected.detach(), **TOLERANCE)
        assert gradients.keys() == {key for key, _ in model.named_parameters()}
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(
                gradients[key], parameter.grad, **TOLERANCE, msg=f"{name} {key}"
            )
