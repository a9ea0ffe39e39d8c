"""The methods with constants and with weights that were not trained: they plan, and keep their
budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.errors import MissingExtra, SituateError  # noqa: E402
from situate.policies import installed  # noqa: E402
from situate.solvers import solve  # noqa: E402
from situate.solvers.evolutionary.regal import weights  # noqa: E402
from situate.solvers.evolutionary.regal.regal import (  # noqa: E402
    CONSTANT,
    SETS,
    WEIGHTS,
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


# Without weights `regal` proposes the constant of its settings on any devices, without PyTorch.


@pytest.mark.parametrize("settings", ["paper", "tuned"])
@pytest.mark.parametrize("objective", ["time", "memory"])
@pytest.mark.parametrize("family", families())
def test_constants_plan_every_family(family: str, objective: str, settings: Any) -> None:
    of = problem(family, objective, "regal")
    check(of, solve(of, "regal", evaluations=120, learning=Learning(settings=settings)))


@pytest.mark.parametrize("evaluations", [1, 2, 3, 100, 1000])
@pytest.mark.parametrize("bandwidth", [1.0, float("inf")])
def test_constants_leave_the_whole_budget_to_brkga(evaluations: int, bandwidth: float) -> None:
    of = Problem(fork(12), devices(1, 2, bandwidth=bandwidth), rules="regal")
    result = solve(of, "regal", evaluations=evaluations)
    assert result.evaluations <= evaluations
    assert result.evaluations == evaluations or result.gap == 0


@pytest.mark.parametrize("method", ["regal", "idrs"])
def test_a_constant_needs_no_time_and_the_seed_decides(method: str) -> None:
    of = Problem(fork(40), devices(1, 1, 1, bandwidth=100.0), rules="regal")
    learning = Learning(weights=CONSTANT)
    assert solve(of, method, time_limit=0, learning=learning).evaluations >= 1

    def solved(**changes: Any) -> Any:
        return solve(of, method, evaluations=900, learning=learning, **changes).plan.placement

    assert solved(threads=1) == solved(threads=3)
    assert solved(seed=1) != solved(seed=2)


def test_a_constant_needs_no_package_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    of = Problem(fork(12), devices(1, 1), rules="regal")
    default = solve(of, "regal", evaluations=100)
    named = solve(of, "regal", evaluations=100, learning=Learning(weights=CONSTANT))
    assert default.plan.placement == named.plan.placement


def test_where_no_plan_that_sends_is_better_a_constant_finds_one_device() -> None:
    of = Problem(fork(40), devices(1, 2, bandwidth=1e-6), rules="regal")
    assert solve(of, "regal", evaluations=400).value <= solve(of, "single").value


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
        solve(of, "idrs", evaluations=9)


@pytest.mark.parametrize(
    ("method", "settings", "named"), [("idrs", "paper", "paper"), ("gas", "tuned", "gas")]
)
def test_settings_without_weights_are_named(method: str, settings: Any, named: str) -> None:
    of = Problem(chain(4), devices(1, 1), rules="regal")
    with pytest.raises(SituateError, match=f"no weights for time on 2 devices in {named} settings"):
        solve(of, method, evaluations=9, learning=Learning(settings=settings))


def test_the_packages_own_weights_are_named_where_none_of_them_fits() -> None:
    of = Problem(chain(4), devices(1, 1), "memory", rules="regal")
    with pytest.raises(SituateError, match=r"only for time on 2 devices in tuned settings: train"):
        solve(of, "idrs", evaluations=9)


def test_weights_are_named_after_their_set_and_the_synthetic_ones_come_first() -> None:
    of = Problem(fork(5), devices(1, 1), rules="regal")
    files = {name: WEIGHTS / f"time-2-tuned-{name}.safetensors" for name in SETS}
    assert files["real"].read_bytes() != files["synthetic"].read_bytes()
    for given, meant in [(None, "synthetic"), *((name, name) for name in SETS)]:
        search = Search(of, options=MethodOptions(weights=given))
        assert _weights(search, "idrs") == files[meant]
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
        solve(
            Problem(chain(4), devices(1, 1)),
            method,
            evaluations=10,
            learning=Learning(weights="synthetic"),
        )


def test_other_methods_take_no_weights(tmp_path: Path) -> None:
    of = Problem(chain(4), devices(1, 1))
    with pytest.raises(SituateError, match="'brkga' does not learn"):
        solve(of, "brkga", evaluations=9, learning=learning(tmp_path))


def test_seconds_between_steps_are_refused(tmp_path: Path) -> None:
    of = Problem(chain(4), devices(1, 1), "throughput")
    with pytest.raises(SituateError, match="not the seconds between steps: use auto"):
        solve(of, "regal", evaluations=9, learning=learning(tmp_path))
