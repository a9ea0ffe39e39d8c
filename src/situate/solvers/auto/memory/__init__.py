"""The parts of `auto` where memory is sought or short."""
