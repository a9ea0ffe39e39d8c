"""Training of REGAL's policy: a contextual bandit over graphs (REGAL, 4.1)."""
