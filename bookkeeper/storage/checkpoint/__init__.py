"""Checkpoints: what the journal holds becomes covered by the other files, and the space is used again.

checkpoint     one checkpoint, in the order that survives a crash
checkpointer   when there is one; space; spare journal files; the clean stop
manifest       which files are the bookie's, and how far the journal is covered
"""
