"""Plans of language models on the command line."""

from __future__ import annotations

import json

import pytest

from tests.language.files import LLAMA, gguf_header, llama_tensors
from tests.language.planning.homes import DENSE, MIXTURE

HOME = """
name = "home"
[[devices]]
name = "fast"
memory = "8 GiB"
bandwidth = 900e9
flops.float32 = 30e12
[[devices]]
name = "slow"
memory = "6 GiB"
bandwidth = 90e9
flops.float32 = 3e12
[[devices]]
name = "cpu"
kind = "cpu"
memory = "16 GiB"
bandwidth = 40e9
flops.float32 = 1e12
[[links]]
from = "*"
to = "*"
bandwidth = 8e9
latency = 1e-5
"""


@pytest.fixture
def request_(tmp_path, monkeypatch):
    """A model, a home, and the options that name them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home.toml").write_text(HOME)
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    options = ("config.json", "--quant", "Q4_K_M", "--cluster", "home.toml")
    return (*options, "--prompt", "600", "--reply", "60")


# Plans: the text, the JSON and the file agree.
def test_a_plan_names_devices_rates_and_its_command(situate, request_):
    run = situate("plan", *request_, "--context", "2048")
    assert run.status == 0
    for text in ("prefill", "decode", "fast 0-3", "output on fast", "left out", "slow: with it"):
        assert text in run.out
    assert "llama-server -m config.json -dev CUDA0 -ngl 5 -c 2048 -np 1" in run.out


def test_json_and_file_have_the_same_layout(situate, request_, tmp_path):
    content = situate("plan", *request_, "--json", "--out", "plan.json").json
    assert content["layers"] == ["fast"] * 4
    assert content["feasible"] is True
    assert content["decode_tokens_per_second"] > 0
    file = json.loads((tmp_path / "plan.json").read_text())
    assert file["format"] == "situate-language-plan"
    assert {key: content[key] for key in file if key in content} == {
        key: value for key, value in file.items() if key in content
    }


def test_the_longest_context_is_an_objective(situate, request_):
    content = situate("plan", *request_, "--objective", "context", "--json").json
    assert content["cache"]["context"] == MIXTURE["max_position_embeddings"]


def test_explain_takes_a_plan_of_before(situate, request_):
    situate("plan", *request_, "--out", "plan.json")
    run = situate("explain", "config.json", "plan.json", *request_[1:5])
    assert run.status == 0
    assert "decode time" in run.out


# Comparisons with other rules and with typed flags.
def test_a_comparison_has_other_rules_and_the_flags(situate, request_):
    line = "-ngl 99 -ot exps=CPU"
    content = situate("compare", *request_, "--flags", line, "--json").json["layouts"]
    assert set(content) == {"situate", "--fit", "by memory", "experts on CPU", line}
    assert all(content["situate"]["seconds"] <= row["seconds"] for row in content.values())
    assert "best" in situate("compare", *request_).out


# Exports to engines.
@pytest.mark.parametrize("engine", ["llamacpp", "ik_llamacpp", "llama-swap", "ollama", "vllm"])
def test_plans_are_exported_to_engines(situate, request_, tmp_path, engine):
    situate("plan", *request_, "--out", "plan.json")
    options = ("--cluster", "home.toml", "--quant", "Q4_K_M", "--to", engine, "--out", "out.txt")
    answer = situate("export", "config.json", "plan.json", *options)
    assert answer.status == 0
    assert ("buffers of its own graph are not replayed" in answer.err) == (engine == "ik_llamacpp")
    assert "config.json" in (tmp_path / "out.txt").read_text()


# Drafts: planned beside the model, in the file, and in the exports.
@pytest.fixture
def draft(tmp_path):
    (tmp_path / "draft").mkdir()
    values = DENSE | {"num_hidden_layers": 1}
    (tmp_path / "draft" / "config.json").write_text(json.dumps(values))
    return ("--draft", "draft", "--draft-acceptance", "0.8", "--draft-tokens", "4")


def test_a_plan_with_a_draft_says_what_it_gains(situate, request_, draft, tmp_path):
    content = situate("plan", *request_, *draft, "--json", "--out", "plan.json").json
    drafting = content["request"]["drafting"]
    assert (drafting["tokens"], drafting["acceptance"]) == (4, 0.8)
    assert "-md draft -devd CUDA0" in content["command"]
    assert content["decode_tokens_per_second_without_draft"] > 0
    options = ("--cluster", "home.toml", "--quant", "Q4_K_M", "--to", "llama-swap")
    situate("export", "config.json", "plan.json", *options, "--out", "swap.yaml")
    assert "--spec-draft-n-max 4" in (tmp_path / "swap.yaml").read_text()
    explained = situate("explain", "config.json", "plan.json", *request_[1:5])
    assert "draft on fast" in explained.out


def test_the_longest_context_leaves_room_for_a_draft(situate, request_, draft):
    run = situate("plan", *request_, *draft, "--objective", "context", "--json")
    assert run.json["cache"]["context"] == MIXTURE["max_position_embeddings"]


def test_a_plan_has_a_picture(situate, request_, tmp_path):
    pytest.importorskip("matplotlib")
    assert situate("plan", *request_, "--picture", "plan.svg").status == 0
    assert "<svg" in (tmp_path / "plan.svg").read_text()


# Bad inputs take one line each.
@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("plan", ["--context", "9000"], "--context: 9,000 tokens, and .* ends at 8,192"),
        ("plan", ["--context", "512"], "do not hold prompt and reply"),
        ("plan", ["--objective", "throughput"], "unknown objective 'throughput'"),
        ("plan", ["--method", "heft"], "--method: has no meaning for a language model"),
        ("plan", ["--cache-type", "q9"], "cache type 'q9'"),
        ("plan", ["--draft-tokens", "4"], "--draft-tokens: needs a smaller model: give --draft"),
        ("plan", ["--draft-acceptance", "0.5"], "--draft-acceptance: needs a smaller model"),
        ("plan", ["--picture", "plan.pdf"], "must end in .svg or .png"),
        ("compare", ["--picture", "plan.svg"], "--picture: has no meaning"),
        ("compare", ["--flags", "--bogus"], "--flags: unknown flag '--bogus'"),
        ("compare", ["--flags", "-dev CUDA5"], "unknown device 'CUDA5'"),
    ],
)
def test_bad_requests_are_refused_in_one_line(situate, request_, command, options, message):
    import re

    run = situate(command, *request_, *options)
    assert run.status == 2
    assert re.search(message, run.err)
    assert run.err.count("\n") == 1


def test_a_plan_needs_a_cluster(situate, request_):
    assert "give --cluster" in situate("plan", *request_[:3]).err


def test_a_home_without_room_is_refused(situate, request_, tmp_path):
    (tmp_path / "home.toml").write_text(HOME.replace(" GiB", " MiB"))
    run = situate("plan", *request_)
    assert run.status == 2
    assert "GiB" in run.err


def test_a_draft_has_the_same_vocabulary(situate, request_, tmp_path):
    (tmp_path / "draft.gguf").write_bytes(gguf_header(LLAMA, llama_tensors()))
    run = situate("plan", *request_, "--draft", "draft.gguf")
    assert run.status == 2
    assert "has a vocabulary of 100 tokens" in run.err


def test_a_plan_of_another_model_is_refused(situate, request_, tmp_path):
    situate("plan", *request_, "--out", "plan.json")
    (tmp_path / "config.json").write_text(json.dumps(DENSE))
    run = situate("explain", "config.json", "plan.json", *request_[1:5])
    assert run.status == 2
    assert "has other tensors" in run.err


def test_options_of_language_models_are_for_them_alone(situate, model):
    run = situate("plan", model, "--context", "100")
    assert run.status == 2
    assert "--context is for language models" in run.err


# Passes as graphs, which other commands read.
def test_a_pass_is_a_graph_that_can_be_planned(situate, request_, tmp_path):
    options = ("--quant", "Q4_K_M", "--phase", "decode", "--depth", "1000")
    assert situate("convert", "config.json", "decode.json", *options).status == 0
    text = HOME.replace("flops.float32", "flops.float16")
    (tmp_path / "machine.toml").write_text(text)
    run = situate("plan", "decode.json", "--cluster", "machine.toml", "--method", "heft")
    assert run.status == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ubatch", "64"], "--ubatch: is for --phase prefill"),
        (["--phase", "train"], "unknown phase 'train'"),
        (["--depth", "9000"], "--depth: 9,000 and 1 tokens, and .* ends at 8,192"),
        (["--depth", "1000", "--context", "100"], "do not fit a context of 100"),
    ],
)
def test_passes_that_cannot_be_are_refused(situate, request_, options, message):
    import re

    run = situate("convert", "config.json", "decode.json", "--quant", "Q4_K_M", *options)
    assert run.status == 2
    assert re.search(message, run.err)


def test_passes_are_of_language_models(situate, model, tmp_path):
    run = situate("convert", model, str(tmp_path / "x.json"), "--phase", "decode")
    assert run.status == 2
    assert "--phase is for language models" in run.err
