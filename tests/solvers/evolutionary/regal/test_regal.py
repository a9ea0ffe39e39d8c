"""The methods with weights that were not trained: they plan, and keep their budgets."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.errors import MissingExtra, SituateError  # noqa: E402
from situate.policies import installed  # noqa: E402
from situate.solvers import solve  # noqa: E402
from situate.solvers.budget import Budget  # noqa: E402
from situate.solvers.evolutionary.regal import weights  # noqa: E402
from situate.solvers.evolutionary.regal.regal import (  # noqa: E402
    SETS,
    WEIGHTS,
    _population_for_features,
    _weights,
)
from situate.solvers.evolutionary.regal.settings import SETTINGS  # noqa: E402
from situate.solvers.learned.learner import Learning  # noqa: E402
from situate.solvers.search import MethodOptions, Search  # noqa: E402
from tests.solvers.evolutionary.regal.test_weights import about, policy  # noqa: E402
from tests.solvers.families import chain, devices, families, fork, problem  # noqa: E402
from tests.solvers.test_solve import check  # noqa: E402

METHODS = ("regal", "gas", "idrs")


def learning(
    folder: Path, objective: str = "time", count: int = 2, method: str = "regal"
) -> Learning:
    path = folder / f"{method}-{objective}-{count}.safetensors"
    settings = SETTINGS["gas" if method == "gas" else "paper", objective]  # type: ignore[index]
    of = about(settings, objective=objective, devices=count)
    weights.write(path, policy(of), of)
    return Learning(weights=path)


# Plans verify, and all evaluations count, those for features included.


@pytest.mark.parametrize("rules", ["situate", "regal", "doppler"])
@pytest.mark.parametrize("objective", ["time", "memory"])
@pytest.mark.parametrize("family", families())
def test_plans_hold_on_every_family(
    family: str, objective: str, rules: str, tmp_path: Path
) -> None:
    of = problem(family, objective, rules)
    for method in METHODS:
        given = learning(tmp_path, objective, of.d, method)
        check(of, solve(of, method, evaluations=120, learning=given))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("evaluations", [1, 2, 3, 100, 399, 400, 1000])
def test_features_count_as_evaluations(method: str, evaluations: int, tmp_path: Path) -> None:
    of = Problem(fork(12), devices(1, 1), rules="regal")
    given = learning(tmp_path, method=method)
    result = solve(of, method, evaluations=evaluations, learning=given)
    assert result.evaluations <= evaluations
    assert result.evaluations == evaluations or result.gap == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("evaluations", [1, 2, 3, 4, 5, 100])
def test_plans_on_one_device_count_too_where_transfers_take_time(
    method: str, evaluations: int, tmp_path: Path
) -> None:
    of = Problem(fork(12), devices(1, 2, bandwidth=1.0), rules="regal")
    result = solve(of, method, evaluations=evaluations, learning=learning(tmp_path, method=method))
    assert result.evaluations <= evaluations
    assert result.evaluations == evaluations or result.gap == 0


@pytest.mark.parametrize("method", METHODS)
def test_where_transfers_take_longer_than_ops_no_plan_on_one_device_is_better(
    method: str, tmp_path: Path
) -> None:
    of = Problem(fork(40), devices(1, 2, bandwidth=1e-6), rules="regal")
    result = solve(of, method, evaluations=400, learning=learning(tmp_path, method=method))
    assert result.value <= solve(of, "single").value


# Seeds and budgets decide a plan.


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_and_threads_do_not(method: str, tmp_path: Path) -> None:
    of = Problem(fork(40), devices(1, 1, bandwidth=100.0), rules="regal")
    given = learning(tmp_path, method=method)

    def solved(**changes: Any) -> Any:
        return solve(of, method, evaluations=900, learning=given, **changes).plan.placement

    assert solved(threads=1) == solved(threads=3)
    assert solved(seed=1) != solved(seed=2)


def test_a_budget_of_nothing_gives_a_plan(tmp_path: Path) -> None:
    of = Problem(fork(12), devices(1, 1), rules="regal")
    assert solve(of, "regal", time_limit=0, learning=learning(tmp_path)).evaluations >= 1


@pytest.mark.parametrize("method", METHODS)
def test_a_network_is_not_asked_without_time_for_its_proposals(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Problem(fork(12), devices(1, 1), rules="regal")
    given = learning(tmp_path, method=method)
    monkeypatch.setattr("situate.solvers.evolutionary.regal.regal.encoding", None)
    assert solve(of, method, time_limit=0, learning=given).evaluations == 1


def test_features_leave_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that goes on by a second at every look."""
    clock = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr("situate.solvers.evolutionary.brkga.SLICE_SECONDS", 0.001)
    endless = replace(SETTINGS["paper", "time"], feature_evaluations=10**9)
    search = Search(
        Problem(fork(12), devices(1, 1), rules="regal"), budget=Budget(time_limit=400.0), threads=1
    )
    _population_for_features(search, endless)
    assert 200 <= search.budget.seconds <= 220


# Weights must be for the problem, and errors say how to train some.


def test_weights_of_something_else_are_refused(tmp_path: Path) -> None:
    of = Problem(chain(4), devices(1, 1, 1), rules="regal")
    with pytest.raises(SituateError, match="trained for 2 devices, not for 3"):
        solve(of, "regal", evaluations=9, learning=learning(tmp_path))


def test_without_weights_for_the_problem_it_says_how_to_train_some() -> None:
    of = Problem(chain(4), devices(*[1] * 7), rules="regal")
    with pytest.raises(
        SituateError, match="no weights for time on 7 devices in tuned settings come with"
    ):
        solve(of, "regal", evaluations=9)


@pytest.mark.parametrize(
    ("method", "settings", "named"),
    [("regal", "paper", "paper"), ("idrs", "paper", "paper"), ("gas", "tuned", "gas")],
)
def test_settings_without_weights_are_named(method: str, settings: Any, named: str) -> None:
    of = Problem(chain(4), devices(1, 1), rules="regal")
    with pytest.raises(SituateError, match=f"no weights for time on 2 devices in {named} settings"):
        solve(of, method, evaluations=9, learning=Learning(settings=settings))


def test_the_packages_own_weights_are_named_where_none_of_them_fits() -> None:
    of = Problem(chain(4), devices(1, 1), "memory", rules="regal")
    with pytest.raises(SituateError, match=r"only for time on 2 devices in tuned settings: train"):
        solve(of, "regal", evaluations=9)


def test_weights_are_named_after_their_set_and_the_synthetic_ones_are_the_default() -> None:
    of = Problem(fork(5), devices(1, 1), rules="regal")
    files = {name: WEIGHTS / f"time-2-tuned-{name}.safetensors" for name in SETS}
    assert files["real"].read_bytes() != files["synthetic"].read_bytes()
    for given, meant in [(None, "synthetic"), *((name, name) for name in SETS)]:
        search = Search(of, options=MethodOptions(weights=given))
        assert _weights(search, "regal") == files[meant]
    assert solve(of, "regal", evaluations=9, learning=Learning(weights="synthetic")).feasible


def test_a_file_with_the_name_of_a_set_is_given_by_its_path(tmp_path: Path) -> None:
    search = Search(
        Problem(fork(5), devices(1, 1)), options=MethodOptions(weights=tmp_path / "real")
    )
    assert _weights(search, "regal") == tmp_path / "real"


def test_a_set_without_weights_for_the_problem_is_named() -> None:
    of = Problem(chain(4), devices(*[1] * 7), rules="regal")
    with pytest.raises(
        SituateError, match="no weights of the real set for time on 7 devices in tuned"
    ):
        solve(of, "regal", evaluations=9, learning=Learning(weights="real"))


# Networks, packages and objectives that do not apply are refused.


@pytest.mark.parametrize(("method", "other"), [("regal", "gas"), ("idrs", "gas"), ("gas", "regal")])
def test_a_network_of_the_other_kind_is_refused(method: str, other: str, tmp_path: Path) -> None:
    of = Problem(chain(4), devices(1, 1), rules="regal")
    with pytest.raises(SituateError, match=f"and {method} takes those of a"):
        solve(of, method, evaluations=9, learning=learning(tmp_path, method=other))


@pytest.mark.parametrize("method", METHODS)
def test_without_the_library_of_weights_it_says_what_to_install(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None if "safe" in name else name)
    with pytest.raises(MissingExtra, match=r"needs safetensors, .*'situate\[torch\]'"):
        solve(Problem(chain(4), devices(1, 1)), method, evaluations=10)


def test_other_methods_take_no_weights(tmp_path: Path) -> None:
    of = Problem(chain(4), devices(1, 1))
    with pytest.raises(SituateError, match="'brkga' does not learn"):
        solve(of, "brkga", evaluations=9, learning=learning(tmp_path))


def test_seconds_between_steps_are_refused(tmp_path: Path) -> None:
    of = Problem(chain(4), devices(1, 1), "throughput")
    with pytest.raises(SituateError, match="not the seconds between steps: use auto"):
        solve(of, "regal", evaluations=9, learning=learning(tmp_path))
