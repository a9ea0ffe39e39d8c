"""The papers' experiments: `python -m research.papers.post_table` and its neighbours."""
