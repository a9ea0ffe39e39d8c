"""Measured figures of situate: `python -m benchmarks`. See docs/benchmarks.md."""
