"""Requests as passes of tokens."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.language.planning.workload import Pass, Workload


def test_a_request_passes_its_prompt_in_ubatches_and_its_reply_token_by_token():
    work = Workload(1200, 60)
    assert list(work.passes(512)) == [Pass(2, 512, 344), Pass(1, 176, 344), Pass(60, 1, 1230)]
    assert work.seconds(2.0, 0.1) == pytest.approx(8.0)


def test_objectives_count_their_phase_alone():
    assert list(Workload(600, 60, "decode").passes(512)) == [Pass(1, 1, 630)]
    assert [p.tokens for p in Workload(600, 60, "prefill").passes(512)] == [512, 88]
    assert Workload(600, 60, "decode").seconds(2.0, 0.1) == 0.1
    assert Workload(600, 60, "prefill").seconds(2.0, 0.1) == 2.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"objective": "speed"}, "unknown objective 'speed'"),
        ({"prompt": 0}, "prompt: must be at least 1"),
        ({"reply": -1}, "reply: must be at least 1"),
    ],
)
def test_bad_requests_are_refused(values, message):
    with pytest.raises(SituateError, match=message):
        Workload(**values)
