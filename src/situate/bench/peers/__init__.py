"""Other people's programs on the same problems; the same simulator judges their plans."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType

from situate.bounds.lower_bound import bound_in_time
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.files.contents import one_line
from situate.results.result import Result
from situate.solvers.budget import Budget
from situate.solvers.search import Search


@dataclass(frozen=True)
class Peer:
    """A program beside situate.

    Attributes:
        name: as `situate bench --methods` takes it.
        function: its module and, behind a colon, its function `run(search)`.
        packages: those that it imports.
        install: the command that installs them.
        summary: the peer in a line.
    """

    name: str
    function: str
    packages: tuple[str, ...]
    install: str
    summary: str

    def check(self) -> None:
        """
        Raises:
            SituateError: a package is missing; says how to install it.
        """
        missing = [package for package in self.packages if find_spec(package) is None]
        if missing:
            raise SituateError(
                f"{self.name}: needs {', '.join(missing)}, which is not installed: {self.install}"
            )

    def solve(
        self, problem: Problem, name: str, *, time_limit: float, seed: int, threads: int
    ) -> Result:
        """The best plan that the peer finds; its bound is situate's.

        Raises:
            SituateError: the peer does not apply, fails by itself or finds no plan.
        """
        begin = time.perf_counter()
        bound = bound_in_time(problem, begin, time_limit)
        search = Search(
            problem,
            bound.value,
            budget=Budget(time_limit=time_limit, begin=begin),
            seed=seed,
            threads=threads,
            bounded_by=bound.name,
        )
        try:
            module, _, function = self.function.partition(":")
            getattr(import_module(module), function)(search)
        except SituateError:
            raise
        except Exception as error:  # whatever goes wrong in a package that is not ours
            raise SituateError(one_line(f"{name}: {type(error).__name__}: {error}")) from error
        return search.result(name)


BESIDE = "pip install --target FOLDER {}, and PYTHONPATH=FOLDER"

_ALL = (
    Peer(
        "pymoo_brkga",
        "situate.bench.peers.brkga:run_pymoo",
        ("pymoo",),
        BESIDE.format("pymoo"),
        "BRKGA of pymoo, evaluated by situate's core",
    ),
    Peer(
        "brkga_mp_ipr",
        "situate.bench.peers.brkga:run_brkga_mp_ipr",
        ("brkga_mp_ipr",),
        BESIDE.format("brkga-mp-ipr"),
        "BRKGA-MP-IPR of Andrade et al., evaluated by situate's core",
    ),
    Peer(
        "accelerate",
        "situate.bench.peers.accelerate:run",
        ("accelerate", "torch", "transformers"),
        "pip install 'situate[torch,baselines]'",
        "accelerate's device map of a network of the zoo",
    ),
)

PEERS = MappingProxyType({peer.name: peer for peer in _ALL})
"""All peers by name."""
