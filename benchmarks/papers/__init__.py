"""The papers' experiments: `python -m benchmarks.papers.post_table` and its neighbours."""
