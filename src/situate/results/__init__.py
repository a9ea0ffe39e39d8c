"""The results of solvers, and the plan as the file that users keep."""
