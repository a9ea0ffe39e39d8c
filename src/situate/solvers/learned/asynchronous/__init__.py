"""Several controllers that learn one policy, each with workers of its own."""
