"""A model that is spread over processes already is refused by name."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (  # noqa: E402
    checkpoint_wrapper,
)
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard  # noqa: E402
from torch.distributed.tensor.parallel import (  # noqa: E402
    ColwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.torch_capture import capture  # noqa: E402

X = torch.ones(2, 4)


@pytest.fixture(autouse=True)
def process_group(tmp_path):
    """A process group of this process alone."""
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def layers():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


def sharded():
    fully_shard(model := layers(), mesh=init_device_mesh("cpu", (1,)))
    return model


def split():
    return parallelize_module(layers(), init_device_mesh("cpu", (1,)), {"0": ColwiseParallel()})


SPREAD = {
    "DistributedDataParallel": lambda: DistributedDataParallel(layers()),
    "FullyShardedDataParallel": lambda: FullyShardedDataParallel(
        layers(), device_id=torch.device("cpu")
    ),
    "FSDPSequential": sharded,
    "DTensor": split,
}


def mean(model, x):
    return model(x).mean()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("how", SPREAD)
def test_it_is_refused_where_it_is_built_without_values(how, training):
    with pytest.raises(
        SituateError, match=rf"^net: .*(model|module '0') is spread .* by {how}, .*"
    ):
        capture(lambda: (SPREAD[how](), X, mean), training=training, name="net")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", SPREAD)
def test_it_is_refused_where_it_exists(how):
    with pytest.raises(SituateError, match=rf" is spread over processes by {how}, .* as it was be"):
        capture_program(SPREAD[how](), (X,), mean)


def test_so_is_a_part_by_its_name():
    with pytest.raises(SituateError, match="module '1' is spread over processes"):
        capture_program(nn.Sequential(layers(), DistributedDataParallel(layers())), (X,), mean)


def test_one_that_recomputes_is_of_one_process():
    assert capture_program(nn.Sequential(checkpoint_wrapper(layers())), (X,), mean).graph.ops


def test_the_remedy_helps():
    model = DistributedDataParallel(layers())
    assert capture_program(model.module, (X,), mean).graph.ops
