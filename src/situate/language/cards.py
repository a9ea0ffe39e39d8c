"""Speeds of graphics cards and CPUs with llama.cpp: nominal rates, and the shares it reaches.

Nominal rates are the makers' (whitepapers of NVIDIA's architectures and AMD's product pages,
dense rates). Shares are medians of published llama.cpp runs of dense models with 4-bit weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class _Architecture:
    """Shares of the nominal rates that llama.cpp reaches on a generation of cards.

    Attributes:
        reading: of the memory's bandwidth, when a token is decoded.
        computing: of the rate of 8-bit products, in long batches.
        attention: of the rate of 8-bit products, in flash attention over a long batch.
    """

    reading: float
    computing: float
    attention: float


ARCHITECTURES = {
    "pascal": _Architecture(0.40, 0.28, 0.10),
    "volta": _Architecture(0.66, 0.36, 0.20),
    "turing": _Architecture(0.70, 0.20, 0.20),
    "ampere": _Architecture(0.80, 0.28, 0.25),
    "ada": _Architecture(0.85, 0.27, 0.20),
    "hopper": _Architecture(0.65, 0.15, 0.15),
    "blackwell": _Architecture(0.78, 0.25, 0.20),
    "rdna2": _Architecture(0.60, 0.30, 0.10),
    "rdna3": _Architecture(0.57, 0.35, 0.10),
    "rdna4": _Architecture(0.65, 0.25, 0.10),
    "cdna": _Architecture(0.50, 0.20, 0.10),
    "arc": _Architecture(0.50, 0.15, 0.08),
    "": _Architecture(0.70, 0.20, 0.15),
}
"""Shares by architecture; the last is for cards of unknown architecture."""


@dataclass(frozen=True)
class Card:
    """A model of graphics card.

    Attributes:
        name: without the maker's.
        architecture: a key of `ARCHITECTURES`.
        memory: GiB.
        bandwidth: nominal GB/s.
        products: 10^12 operations/s of 8-bit matrix products, or of 16-bit ones on a card whose
            matrix units know no others.
    """

    name: str
    architecture: str
    memory: int
    bandwidth: float
    products: float


_CARDS = """
Tesla P40, pascal, 24, 346, 47; Tesla P100, pascal, 16, 732, 19; GTX 1080 Ti, pascal, 11, 484, 45;
GTX 1070, pascal, 8, 256, 26; GTX 1060, pascal, 6, 192, 17; Tesla V100, volta, 32, 900, 112;
Titan V, volta, 12, 653, 110; Tesla T4, turing, 16, 320, 130; RTX 2060, turing, 6, 336, 103;
RTX 2070, turing, 8, 448, 119; RTX 2080 Ti, turing, 11, 616, 215; RTX 2080, turing, 8, 448, 161;
Quadro RTX 8000, turing, 48, 672, 261; RTX 3050, ampere, 8, 224, 73;
RTX 3060 Ti, ampere, 8, 448, 130; RTX 3060, ampere, 12, 360, 102;
RTX 3070 Ti, ampere, 8, 608, 174; RTX 3070, ampere, 8, 448, 163;
RTX 3080 Ti, ampere, 12, 912, 273; RTX 3080, ampere, 10, 760, 238;
RTX 3090 Ti, ampere, 24, 1008, 320; RTX 3090, ampere, 24, 936, 284;
RTX A4000, ampere, 16, 448, 153; RTX A5000, ampere, 24, 768, 222;
RTX A6000 Ada, ada, 48, 960, 728; RTX A6000, ampere, 48, 768, 310; A100, ampere, 80, 1935, 624;
A40, ampere, 48, 696, 299; RTX 4060 Ti, ada, 16, 288, 177; RTX 4060, ada, 8, 272, 121;
RTX 4070 Ti Super, ada, 16, 672, 353; RTX 4070 Ti, ada, 12, 504, 321;
RTX 4070 Super, ada, 12, 504, 284; RTX 4070, ada, 12, 504, 233; RTX 4080, ada, 16, 717, 390;
RTX 4090 D, ada, 24, 1008, 588; RTX 4090, ada, 24, 1008, 661; RTX 6000 Ada, ada, 48, 960, 728;
RTX 2000 Ada, ada, 16, 224, 96; RTX 4000 Ada, ada, 20, 360, 214; L4, ada, 24, 300, 242;
L40, ada, 48, 864, 724; H100, hopper, 80, 3350, 1979; H200, hopper, 141, 4800, 1979;
RTX 5060 Ti, blackwell, 16, 448, 190; RTX 5060, blackwell, 8, 448, 154;
RTX 5070 Ti, blackwell, 16, 896, 352; RTX 5070, blackwell, 12, 672, 247;
RTX 5080, blackwell, 16, 960, 450; RTX 5090, blackwell, 32, 1792, 838;
RTX PRO 6000, blackwell, 96, 1792, 1000; RX 6800 XT, rdna2, 16, 512, 41;
RX 6800, rdna2, 16, 512, 32; RX 6900 XT, rdna2, 16, 512, 46; RX 7800 XT, rdna3, 16, 624, 75;
RX 7900 XTX, rdna3, 24, 960, 123; RX 7900 XT, rdna3, 20, 800, 103;
RX 9070 XT, rdna4, 16, 640, 195; RX 9070, rdna4, 16, 640, 145; R9700, rdna4, 32, 640, 191;
MI50, cdna, 32, 1024, 53; MI60, cdna, 32, 1024, 59; MI100, cdna, 32, 1229, 185;
Arc A770, arc, 16, 560, 275; Arc B580, arc, 12, 456, 233; Arc Pro B50, arc, 16, 224, 170
"""


def _card(row: str) -> Card:
    name, architecture, memory, bandwidth, products = (part.strip() for part in row.split(","))
    return Card(name, architecture, int(memory), float(bandwidth) * 1e9, float(products) * 1e12)


CARDS = tuple(map(_card, _CARDS.split(";")))
"""All cards; bandwidth in bytes/s and products in operations/s."""


def find_card(model: str) -> Card | None:
    """The card with the longest name that a device's model has in it; None if there is none."""
    text = _plain(model)
    matches = [card for card in CARDS if re.search(rf"\b{_plain(card.name)}\b", text)]
    return max(matches, key=lambda card: len(card.name), default=None)


def _plain(name: str) -> str:
    words = re.sub(r"(?i)nvidia|geforce|amd|radeon|intel|tesla|quadro|laptop|gpu|[()]", " ", name)
    words = re.sub(r"(?i)(\d)(ti|super)\b", r"\1 \2", words)
    return " ".join(words.lower().split())


CPU_READING, CORE_BYTES, THREADED_BYTES = 0.85, 10e9, 320e9
"""Share of nominal bandwidth, bytes/s of a core, and bytes/s at which synchronisation limits."""

BYTES_A_FLOP = 0.05
"""Bytes that a core unpacks in the time of a nominal float32 operation."""

PINNED_UPLOAD, PAGEABLE_UPLOAD = 0.9, 0.4
"""Share of a link's bandwidth that uploads reach, from pinned and from other host memory."""

CPU_COMPUTING, REPACKED_COMPUTING = 0.35, 0.95
"""Share of the nominal float32 rate in long batches, in llama.cpp and in ik_llama.cpp."""

CORE_FLOPS = 1e11
"""Nominal float32 operations/s of a core with AVX2 at 3 GHz."""


def cpu_bandwidth(nominal: float, cores: int, flops: float = 0.0) -> float:
    """Effective bytes/s of a CPU that decodes.

    The memory, the cores, and the synchronisation of many threads limit it; a norm of order 3
    joins the limits.

    Args:
        nominal: bytes/s of the memory.
        cores: that compute.
        flops: nominal float32 operations/s of all cores; 0 if unknown.
    """
    core = min(CORE_BYTES * cores, BYTES_A_FLOP * flops) if flops else 0.75 * CORE_BYTES * cores
    limits = (CPU_READING * nominal, core, THREADED_BYTES)
    return float(sum(limit**-3.0 for limit in limits) ** (-1 / 3))


TYPE_SHARES = {
    "IQ1_S": 0.8, "IQ1_M": 0.8, "IQ2_XXS": 0.8, "IQ2_XS": 0.8, "IQ2_S": 0.8, "IQ3_XXS": 0.85,
    "IQ3_S": 0.85, "Q2_K": 0.85, "Q3_K": 0.85, "IQ4_XS": 0.95, "Q6_K": 0.95, "F32": 1.0,
}  # fmt: skip
"""Speed of reading a type as a fraction of that of 4-bit types, on a GPU; 1 if missing."""
