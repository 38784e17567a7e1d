"""What demos have in common: a story that is told while it happens, a command line, and a last line that says it.

view      the live picture: a table on a terminal, lines elsewhere
command   the command line, from the arguments to the exit status
story     a start, one blow after the other, a verdict
cluster   the metadata store, bookies, autorecovery and gateways, each a process
spark     drivers, and comparisons in batch
"""
