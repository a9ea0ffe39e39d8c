"""The parts of `auto` for memory as the objective, and for problems short of memory."""
