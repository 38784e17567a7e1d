"""Streams in simulated worlds, and what must hold there.

judge           what users were told, beside what is in the stream
chain_witness   every version of a stream's node, seen as it is written
world_state     what the parts of one world share
world_hosts     writers, gateways, readers by a cursor, a cleaner
batch_programs  drivers that publish batches, executors
world_faults    what befalls them
stream_cluster  a cluster whose metadata store shows what happens to a stream
cursor_judge    what readers by a cursor were given, beside what it says
batch_judge     what drivers were told, beside what is in the stream
stream_worlds   one seed, one world: ``python -m tests.segments.world.stream_worlds``
stream_bugs     bugs planted to test the worlds
"""
