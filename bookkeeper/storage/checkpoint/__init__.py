"""Checkpoints: other files take over what the journal holds, so that its space can be used again.

checkpoint     one checkpoint, in an order that survives a crash
checkpointer   when to make one, and the clean stop
"""
