"""Benchmarks of sharding problems."""
