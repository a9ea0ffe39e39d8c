"""Plans of sharding problems for the terminal."""
