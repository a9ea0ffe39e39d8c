"""Beyond the planner's table: `python -m benchmarks.papers.planner.planner_ablation`."""
