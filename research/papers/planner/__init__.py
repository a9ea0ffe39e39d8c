"""Beyond the planner's table: `python -m research.papers.planner.planner_ablation`."""
