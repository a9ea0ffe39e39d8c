"""ColocRL: `python -m benchmarks.papers.colocrl.colocrl_table`."""
