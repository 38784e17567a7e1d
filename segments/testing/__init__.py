"""Streams in simulated worlds, and what must hold there.

judge           what users were told, beside what is in the stream
chain_witness   every version of a stream's record, seen as it is written
stream_worlds   one seed, one world: ``python -m segments.testing.stream_worlds``
stream_bugs     bugs planted to test the worlds
"""
