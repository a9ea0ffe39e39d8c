"""Methods and peers by name."""

from __future__ import annotations

import pytest

from situate.bench.contenders import check_contenders, solve_with
from situate.bench.peers import PEERS
from situate.errors import SituateError
from situate.solvers import METHODS
from tests.bench.small import instance


def test_methods_and_peers_have_names_of_their_own():
    assert METHODS.keys() & PEERS.keys() == set()


def test_a_method_is_known_by_its_name():
    check_contenders(["auto", "heft"])
    result = solve_with(instance().make(), "heft", 0.1, seed=3, threads=1)
    assert (result.method, result.seed) == ("heft", 3)


def test_an_unknown_name_has_the_nearest_of_both():
    with pytest.raises(SituateError, match="did you mean 'pymoo_brkga'"):
        check_contenders(["pymo_brkga"])


def test_a_peer_that_is_missing_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("situate.bench.peers.find_spec", lambda name: None)
    with pytest.raises(SituateError, match=r"pymoo_brkga: needs pymoo, .* pip install .* pymoo"):
        check_contenders(["pymoo_brkga"])
