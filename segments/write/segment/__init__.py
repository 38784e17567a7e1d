"""Segments, one after the other.

segment_machine   which segment, and what a failure, a roll or another owner does (pure)
rolling           when a segment ends (pure)
segment_change    the steps between two segments
roll_waiters      who waits for a roll
"""
