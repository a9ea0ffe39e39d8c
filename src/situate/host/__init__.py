"""The machine that this process runs on: its devices, its memory and its standard streams."""
