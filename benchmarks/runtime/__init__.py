"""Steps that run on this machine, measured."""
