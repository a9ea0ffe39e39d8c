"""Figures as the papers print them: seconds of a training step, None where memory did not do."""

from __future__ import annotations

from dataclasses import dataclass

Seconds = float | None


@dataclass(frozen=True)
class PostRow:
    """A row of Table 1 of Post (Gao, Chen and Li, NeurIPS 2018): Tesla K80, batch 32 for
    convolutional networks and 64 for recurrent ones."""

    network: str
    gpus: int
    single: Seconds
    expert: float
    metis: float
    policy_gradient: float
    post: float


POST = (
    PostRow("rnnlm", 2, 0.44, 0.89, 1.81, 0.66, 0.44),
    PostRow("resnet50", 2, 0.86, 0.86, 4.47, 1.49, 0.86),
    PostRow("resnet200", 2, 2.75, 2.75, 11.63, 3.62, 2.75),
    PostRow("resnet50", 4, 0.86, 0.86, 4.21, 2.37, 0.86),
    PostRow("resnet101", 8, 1.59, 1.59, 7.31, 2.90, 1.59),
    PostRow("inception_v3", 2, 1.79, 1.79, 6.76, 2.15, 1.30),
    PostRow("inception_v3", 4, 1.75, 1.75, 6.07, 1.82, 1.19),
    PostRow("inception_v3", 8, 1.78, 1.78, 7.35, 2.67, 1.29),
    PostRow("nmt2", 2, None, 2.05, 7.47, 2.30, 1.22),
    PostRow("nmt4", 4, None, 3.43, 11.04, 4.08, 2.13),
    PostRow("nmt8", 8, None, 5.11, 12.74, 5.35, 2.20),
)


@dataclass(frozen=True)
class HierarchicalRow:
    """A row of the table of the Hierarchical Planner (Mirhoseini et al., ICLR 2018): Tesla K40,
    batch 32 for Inception-V3, 128 for ResNet, 64 for recurrent networks."""

    network: str
    gpus: int
    cpu: float
    single: Seconds
    expert: float
    scotch: float
    mincut: float
    hierarchical: float


HIERARCHICAL = (
    HierarchicalRow("inception_v3", 2, 0.61, 0.15, 0.15, 0.93, 0.82, 0.13),
    HierarchicalRow("resnet50:batch128", 2, 2.45, 1.18, 1.18, 6.27, 2.92, 1.18),
    HierarchicalRow("rnnlm", 2, 6.89, 1.57, 1.57, 5.62, 5.21, 1.57),
    HierarchicalRow("nmt2", 2, 6.46, None, 2.13, 3.21, 5.34, 0.84),
    HierarchicalRow("nmt4", 4, 10.68, None, 3.64, 11.18, 11.63, 1.69),
    HierarchicalRow("nmt8", 8, 11.52, None, 3.88, 17.85, 19.01, 4.07),
)


@dataclass(frozen=True)
class Statistics:
    """Ops and groups of a network as a paper prints them; `rule` makes such groups here."""

    source: str
    network: str
    ops: int
    groups: int | None = None
    rule: str | None = None


STATISTICS = (
    Statistics("ColocRL", "rnnlm", 8943, 188, "colocation"),
    Statistics("ColocRL", "nmt2", 22_097, 280, "colocation"),
    Statistics("ColocRL", "inception_v3", 31_180, 83, "colocation"),
    Statistics("Spotlight", "cifar_cnn", 926, 86, "prefix"),
    Statistics("Hierarchical Planner", "inception_v3", 24_713),
    Statistics("Hierarchical Planner", "resnet50:batch128", 20_586),
    Statistics("Hierarchical Planner", "rnnlm", 9021),
    Statistics("Hierarchical Planner", "nmt2", 28_044),
    Statistics("Hierarchical Planner", "nmt4", 46_600),
    Statistics("Hierarchical Planner", "nmt8", 83_712),
)
"""ColocRL's are from the slides, which give its NMT as 22,097 to 80,000 ops."""

TITLES = {
    "rnnlm": "RNNLM",
    "resnet50": "ResNet-50",
    "resnet50:batch128": "ResNet (50 here)",
    "resnet101": "ResNet-101",
    "resnet200": "ResNet-200",
    "inception_v3": "Inception-V3",
    "nmt2": "NMT, 2 layers",
    "nmt4": "NMT, 4 layers",
    "nmt8": "NMT, 8 layers",
    "cifar_cnn": "CIFAR-10 CNN",
    "cifar_tensorflow": "CIFAR-10 CNN, 926 ops",
}

BELOW_POLICY_GRADIENT = (0.240, 0.637)
"""The range of Post's reductions against the policy gradient (Post, section 1)."""

HOURS = (20.0, 20.5, 13.5)
"""The time of 40,000 steps of Inception-V3 on 4 GPUs, by one GPU, the policy gradient and Post
(section 4)."""

CURVES = (("resnet50", 2), ("resnet101", 8), ("inception_v3", 4))
"""Whose learning curves Fig. 2 is drawn for. The text names the first, and says that the other two
are deeper and on more GPUs; which they are, the extracted text does not show."""


def single_gpu(machine: str, network: str) -> list[float]:
    """The single-GPU figures of a network on `k80` or `k40`; empty where it did not fit."""
    rows: tuple[PostRow | HierarchicalRow, ...] = POST if machine == "k80" else HIERARCHICAL
    return [row.single for row in rows if row.network == network and row.single is not None]
