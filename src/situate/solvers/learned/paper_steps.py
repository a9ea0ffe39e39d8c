"""The steps by which the papers measure a placement."""

from __future__ import annotations

from situate.evaluators.steps import Steps

POST = Steps(dropped=1, timed=10, window=10)
"""11 steps, the first dropped, the mean of the others (Post, section 4). Spotlight's Algorithm 1
trains for ten steps, without details."""

COLOCRL = Steps(dropped=5, timed=10, window=5)
"""Ten repetitions after five discarded ones, the smallest moving average (ColocRL); the window is
ours."""

PAPER_STEPS = {
    "policy_gradient": POST,
    "ppo": POST,
    "cross_entropy": POST,
    "post": POST,
    "spotlight": POST,
    "colocrl": COLOCRL,
}
"""By method, in `paper` settings. The Hierarchical Planner's sources give none."""
