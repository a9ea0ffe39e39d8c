"""Lower bounds: values that no plan which fits can beat."""
