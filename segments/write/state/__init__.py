"""What a writer knows of its stream.

stream_owner      the node, held by its owner
write_state       the end: where it is, what comes next, the producers
contents_tally    what the open segment holds
snapshot          what a take-over begins with
"""
