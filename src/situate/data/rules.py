"""The rules of execution, settings of the one model of execution."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from situate.errors import SituateError, nearest
from situate.validation import check_items

Transfers = Literal["overlapped", "blocking", "atomic"]
Memory = Literal["time", "step", "persistent"]


class Rules(msgspec.Struct, frozen=True):
    """Rules of execution, as settings of the one model.

    Raises:
        SituateError: unknown transfers or memory; atomic transfers with a memory other than
            `persistent`, because the lives of tensors within a call are unknown.
    """

    name: str
    transfers: Transfers | None = None
    """None: the cluster's. `atomic`: a device runs its ops as one call (dnn-partitioning)."""
    contention: bool = True
    """A channel carries one transfer at a time."""
    signals: bool = True
    """A tensor of size zero without a transfer time of its own occupies nothing on its way."""
    memory: Memory = "time"
    """`time`: live bytes at every instant; `step`: after every op and transfer, in their order
    (REGAL, A.4); `persistent`: persistent bytes only."""

    def __post_init__(self) -> None:
        check_items([self], Rules, lambda _: "rules")
        options = {"transfers": (None, *get_args(Transfers)), "memory": get_args(Memory)}
        for setting, values in options.items():
            value = getattr(self, setting)
            if value not in values:
                hint = nearest(str(value), filter(None, values))
                raise SituateError(f"rules {self.name!r}: unknown {setting} {value!r}{hint}")
        if self.transfers == "atomic" and self.memory != "persistent":
            raise SituateError(
                f"rules {self.name!r}: atomic transfers count persistent bytes alone: "
                f"memory must be 'persistent', got {self.memory!r}"
            )


RULES = {
    rules.name: rules
    for rules in (
        Rules("situate"),
        Rules("regal", transfers="blocking", contention=False, signals=False, memory="step"),
        Rules("doppler", transfers="overlapped", contention=False),
        Rules("dnn-partitioning", transfers="atomic", contention=False, memory="persistent"),
    )
}
"""Rules by name: situate's own, and those of REGAL (Paliwal et al., ICLR 2020), DOPPLER (ICLR 2026)
and Tarnawski et al. (NeurIPS 2020); see docs/execution-model.md."""


def find_rules(name: str) -> Rules:
    """The rules of that name.

    Raises:
        SituateError: with the nearest name there is.
    """
    if name not in RULES:
        raise SituateError(f"unknown rules {name!r}{nearest(name, RULES)}")
    return RULES[name]
