"""The file system: a tree that is a state machine, its records and its snapshot. Pure."""
