"""ColocRL: `python -m research.papers.colocrl.colocrl_table`."""
