"""The file system: the tree as a state machine, its records and its snapshot. Pure."""
