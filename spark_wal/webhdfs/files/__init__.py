"""The file system: the tree as a state machine, its records and its snapshot. Pure.

namespace, inodes     the tree and everything that may happen to it; its nodes
tree_answers, lookups what the tree answers; from a path to what is there
rename_rules, quotas  which renames are done, refused or answered with false; what directories may hold
tracked_files         files that are followed while others rename them
tree_memory           how much memory it takes, and may take
records, snapshot     changes, and the whole tree, as bytes
paths                 paths, and their form in a request
incoming_files        files whose bytes are on their way
temp_files, numbered  which temporary files are abandoned; which files go when a directory goes back to a number
"""
