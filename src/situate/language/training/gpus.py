"""Rates of GPUs in training: dense rates by type of matrix product, memory, links.

Sources: NVIDIA's datasheets and architecture whitepapers of each card (dense rates with float32
accumulation; GeForce cards halve those of data-centre ones). Links: NVLink of one direction, or
the PCIe slot as the `p2pBandwidthLatencyTest` of the CUDA samples reaches it. Networks: adapters of
the makers' systems (DGX-1 and P3 for V100, DGX A100, DGX H100, DGX B200) as bytes/s of one GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from situate.errors import nearest
from situate.language.cards import find_card

GIB = 2**30

CONTEXT = 0.6 * GIB
"""Bytes of the CUDA context with its kernels (about 0.5 to 0.7 GiB in `nvidia-smi` on idle)."""


@dataclass(frozen=True)
class Gpu:
    """A model of GPU, or a device of a cluster.

    Attributes:
        name: of the model.
        memory: bytes that programs can use.
        bandwidth: nominal bytes/s of its memory.
        rates: nominal FLOP/s by type of matrix product.
        units: streaming multiprocessors.
        sustained: share of the nominal rate that large 16-bit products reach.
        flash2: rate of FlashAttention-2 by that of newer kernels (arXiv:2407.08608, figure 5).
        link: bytes/s to other GPUs of its node, one direction.
        network: bytes/s to other nodes, one direction.
        host: bytes/s to host memory.
    """

    name: str
    memory: int
    bandwidth: float
    rates: dict[str, float]
    units: int
    link: float
    network: float
    host: float
    sustained: float = 0.75
    flash2: float = 1.0

    def rate(self, kind: str) -> float:
        """FLOP/s of matrix products of a type; 0 if the GPU has no such products."""
        return self.rates.get(kind, 0.0)


# name; GiB; GB/s; TFLOP/s of float16, bfloat16, float8, float4, tfloat32, float32;
# multiprocessors; GB/s of link, network and host.
_GPUS = """
V100-16GB; 16; 900; 125, 0, 0, 0, 0, 15.7; 80; 150, 3.1, 12
V100-32GB; 32; 900; 125, 0, 0, 0, 0, 15.7; 80; 150, 6.2, 12
A100-40GB; 40; 1555; 312, 312, 0, 0, 156, 19.5; 108; 300, 25, 24
A100-80GB; 80; 2039; 312, 312, 0, 0, 156, 19.5; 108; 300, 25, 24
A100-PCIe; 80; 1935; 312, 312, 0, 0, 156, 19.5; 108; 25, 25, 24
A800; 80; 2039; 312, 312, 0, 0, 156, 19.5; 108; 200, 25, 24
H100; 80; 3350; 989, 989, 1979, 0, 494, 67; 132; 450, 50, 56
H100-96GB; 96; 2400; 989, 989, 1979, 0, 494, 67; 132; 450, 50, 56
H100-PCIe; 80; 2039; 756, 756, 1513, 0, 378, 51; 114; 56, 50, 56
H800; 80; 3350; 989, 989, 1979, 0, 494, 67; 132; 200, 50, 56
H20; 96; 4000; 148, 148, 296, 0, 74, 44; 78; 450, 50, 56
H200; 141; 4800; 989, 989, 1979, 0, 494, 67; 132; 450, 50, 56
GH200; 96; 4000; 989, 989, 1979, 0, 494, 67; 132; 450, 50, 450
B200; 180; 7700; 2250, 2250, 4500, 9000, 1125, 75; 148; 900, 50, 56
B300; 270; 7700; 2250, 2250, 4500, 13500, 1125, 75; 148; 900, 100, 56
GB200; 186; 8000; 2500, 2500, 5000, 10000, 1250, 80; 152; 900, 50, 450
GB300; 279; 8000; 2500, 2500, 5000, 15000, 1250, 80; 152; 900, 100, 450
T4; 16; 320; 65, 0, 0, 0, 0, 8.1; 40; 12, 3.1, 12
L4; 24; 300; 121, 121, 242, 0, 60, 30; 58; 12, 6.2, 12
L40S; 48; 864; 362, 362, 733, 0, 183, 91; 142; 25, 12.5, 24
A10G; 24; 600; 70, 70, 0, 0, 35, 31; 80; 12, 3.1, 12
A40; 48; 696; 150, 150, 0, 0, 75, 37; 84; 25, 12.5, 24
RTX A6000; 48; 768; 155, 155, 0, 0, 77, 39; 84; 25, 12.5, 24
RTX 3060; 12; 360; 25, 25, 0, 0, 13, 13; 28; 10, 1.2, 24
RTX 3080; 10; 760; 60, 60, 0, 0, 30, 30; 68; 10, 1.2, 24
RTX 3090; 24; 936; 71, 71, 0, 0, 36, 36; 82; 10, 1.2, 24
RTX 4080; 16; 717; 97, 97, 195, 0, 49, 49; 76; 8.4, 1.2, 24
RTX 4090; 24; 1008; 165, 165, 330, 0, 83, 83; 128; 8.4, 1.2, 24
RTX 5090; 32; 1792; 210, 210, 419, 838, 105, 105; 170; 40, 1.2, 50
RTX PRO 6000; 96; 1792; 504, 504, 1007, 2015, 252, 126; 188; 40, 12.5, 50
"""

TYPES = ("float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn", "tfloat32", "float32")


SUSTAINED = {"H100-96GB": 0.55, "GH200": 0.7, "H1": 0.7, "H2": 0.7, "H8": 0.7, "V100": 0.8}
"""Shares of the nominal rate by the beginning of a name, where they are not 0.75.

Power limits the clock of Hopper in long products; an H100 of 500 W most.
"""

BLACKWELL = ("B200", "B300", "GB", "RTX 50", "RTX PRO 6000")
"""Beginnings of names of GPUs of the architecture Blackwell."""

OLD_KERNEL = ("H", "GH", "B", "GB")
"""Beginnings of names of GPUs on which FlashAttention-2 leaves half of the tensor cores idle."""


def _gpu(row: str) -> Gpu:
    name, memory, bandwidth, rates, units, speeds = (part.strip() for part in row.split(";"))
    values = [float(value) * 1e12 for value in rates.split(",")]
    link, network, host = (float(value) * 1e9 for value in speeds.split(","))
    return Gpu(
        name,
        int(float(memory) * GIB),
        float(bandwidth) * 1e9,
        {kind: rate for kind, rate in zip(TYPES, values, strict=True) if rate},
        int(units),
        link,
        network,
        host,
        next((share for start, share in SUSTAINED.items() if name.startswith(start)), 0.75),
        0.5 if name.startswith(OLD_KERNEL) else 1.0,
    )


GPUS = {gpu.name: gpu for gpu in map(_gpu, _GPUS.strip().splitlines())}
"""GPUs by name."""

DEFAULT_SIZES = {"V100": "V100-32GB", "A100": "A100-80GB", "4090": "RTX 4090", "3090": "RTX 3090"}
"""GPUs by the names that people leave sizes and families out of."""

CARD_SHARE = 0.25
"""Rate of float16 products of a card by that of its 8-bit ones (GeForce architectures)."""


def find_gpu(model: str, whole: bool = False) -> Gpu | None:
    """The GPU with the longest name that a model has in it; None if there is none.

    Cards that this table lacks have the nominal rates of `situate.language.cards`.

    Args:
        model: such as `H100-SXM5-80GB`.
        whole: the model must be the name of a GPU, with nothing beside it.
    """
    text = _plain(model)
    names = {_plain(gpu.name): gpu for gpu in GPUS.values()}
    names |= {_plain(short): GPUS[long] for short, long in DEFAULT_SIZES.items()}
    names |= {name.removeprefix("rtx"): gpu for name, gpu in names.items()}
    if matches := [name for name in names if name == text or (name in text and not whole)]:
        return names[max(matches, key=len)]
    card = find_card(model)
    if card is None or (
        whole and _plain(card.name).removeprefix("rtx") != text.removeprefix("rtx")
    ):
        return None
    rate = CARD_SHARE * card.products
    rates = {"float16": rate, "bfloat16": rate, "tfloat32": rate / 2, "float32": rate / 2}
    # About 1.2 TFLOP/s a multiprocessor.
    units = max(round(rate / 1.2e12), 8)
    return Gpu(card.name, card.memory * GIB, card.bandwidth, rates, units, 10e9, 1.2e9, 12e9)


def unknown_gpu(model: str) -> str:
    """A message for a GPU that the table lacks, with the nearest one of its family."""
    family = _family(model)
    names = [name for name in GPUS if family and _family(name) == family]
    hint = nearest(model, names) or ": give its memory, such as 24GiB"
    return f"no GPU {model[:40]!r} in the table{hint}"


def _family(name: str) -> str:
    """The letters at the beginning of a name."""
    return re.split(r"\d", _plain(name))[0]


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|sxm\d?|hbm\d?e?|[^a-z0-9]", "", name.lower())
