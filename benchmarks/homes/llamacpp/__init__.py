"""Predictions against the real llama.cpp, run on this machine with several devices over RPC."""
