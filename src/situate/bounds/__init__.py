"""Lower bounds on the value of feasible plans."""
