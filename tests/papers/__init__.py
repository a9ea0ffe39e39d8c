"""The papers' experiments, in `benchmarks.papers`."""
