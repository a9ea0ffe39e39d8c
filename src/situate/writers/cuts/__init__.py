"""Plans of parts as teams of devices, for tools that cut modules over a mesh."""
