"""Instances of the ASPLOS 2025 contest on intra-operator parallelism (M. Moffitt and P. Fegade).

The folder holds the contest's files, `A.json.gz` to `Y.json.gz`, or others of their form.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from situate.bench.instances import Instance, ReferenceValue
from situate.errors import SituateError
from situate.sharding import is_sharding_problem, read_sharding_problem

ROUNDED = 1e-8
"""Relative rounding of the costs of later runs."""


class _Published(NamedTuple):
    """Figures of an instance.

    Attributes:
        time_limit: seconds that the contest gave, on eight cores.
        contest: the lowest cost of its 20 teams.
        later: the lowest cost of runs after it, some of hours.
        xla: the cost of XLA's own solver; 0 if it found no plan.
        bound: no plan costs less, proved after the contest.
    """

    time_limit: int
    contest: int
    later: float
    xla: float
    bound: float

    @property
    def best(self) -> ReferenceValue:
        """The lowest of the costs."""
        cost, source = float(self.contest), "ASPLOS 2025 contest"
        if self.xla and self.xla < cost:
            cost, source = self.xla, "XLA's solver, in the ASPLOS 2025 contest"
        if self.later < cost * (1 - ROUNDED):
            cost, source = self.later, "ti2-group/iopddl_experiments"
        return ReferenceValue(cost, source, self.bound)


PUBLISHED = {
    "A": _Published(60, 6_548_641_531, 6_550_261_230, 13_214_846_074, 6_513_812_172.01),
    "B": _Published(60, 532_843, 532_843, 990_205, 532_843),
    "C": _Published(60, 84_102_445_260, 84_102_445_200, 4_195_881_092_919, 82_509_087_987.2),
    "D": _Published(60, 313_613_524_736, 309_396_217_000, 0, 298_253_500_099),
    "E": _Published(60, 338_965_335_230, 338_965_335_000, 6_638_829_816_582, 323_089_251_082),
    "F": _Published(120, 364_364_563_561, 364_364_564_000, 2_788_507_105_840, 353_665_926_894),
    "G": _Published(120, 217_039, 217_039, 1_264_777, 216_931),
    "H": _Published(120, 527_715_404_257, 527_715_404_000, 7_746_779_635_221, 508_115_382_756),
    "I": _Published(120, 583_706_456_444, 583_706_456_000, 6_552_890_513_792, 556_699_743_834),
    "J": _Published(120, 1_360_981_630_371, 1_325_097_240_000, 0, 1_114_418_889_950),
    "K": _Published(180, 2_274_276_676, 2_242_635_780, 0, 2_065_623_588.11),
    "L": _Published(180, 1_970_993_742, 1_970_993_740, 0, 1_918_617_707.44),
    "M": _Published(180, 49_928_460_991, 49_928_157_500, 0, 49_407_421_919.1),
    "N": _Published(180, 202_739_586_553, 199_470_115_000, 0, 172_940_125_422),
    "O": _Published(180, 222_880_199_765, 221_037_852_000, 0, 191_170_000_000),
    "P": _Published(240, 662_197_407_330, 662_197_407_000, 651_833_115_436, 616_246_285_727),
    "Q": _Published(240, 526_776_842_042, 527_715_368_000, 1_995_944_800_323, 505_549_458_726),
    "R": _Published(240, 371_899_551_572, 367_060_921_000, 0, 304_520_000_000),
    "S": _Published(240, 1_534_613_444, 1_511_377_982, 0, 1_511_240_135.54),
    "T": _Published(240, 682_895_254_913, 671_305_745_000, 0, 585_686_829_499),
    "U": _Published(300, 2_569_342_178, 2_443_995_950, 0, 2_018_900_000),
    "V": _Published(300, 1_632_051, 1_617_084, 0, 1_617_084),
    "W": _Published(300, 11_818_845_467_155, 12_232_848_100_000, 0, 10_728_053_095_200),
    "X": _Published(300, 280_461_191_177, 278_109_753_000, 0, 244_891_532_779),
    "Y": _Published(300, 621_176_568_278, 595_085_773_000, 0, 495_260_745_494),
}
"""By instance (asplos-contest/2025 and ti2-group/iopddl_experiments on GitHub)."""


def instances(folder: Path) -> list[Instance]:
    """One a file; those of the contest with its figures.

    Raises:
        SituateError: there is none.
    """
    paths = [path for path in sorted(folder.glob("*.json*")) if is_sharding_problem(path)]
    if not paths:
        raise SituateError(f"{folder}: no problem of the contest in it, such as A.json.gz")
    return [_instance(path) for path in paths]


def _instance(path: Path) -> Instance:
    name = path.name.partition(".")[0]
    published = PUBLISHED.get(name)
    return Instance(
        "iopddl",
        name,
        lambda: read_sharding_problem(path),
        published.best if published else None,
        float(published.time_limit) if published else None,
    )
