"""A program whose state is replicated by a journal: one replica is active, the others stand by.

replicated_program   the whole of it: follows, is elected, takes over, answers
replica_config, status
                     its settings; what it says about itself
program_state        the program's state: edits are applied to it, and a snapshot replaces it
snapshot_keeper      who takes snapshots when, and what is removed then
replica              which part a replica plays, and what its state holds (pure)
known_edits          what it knows to have been durable (pure)
kept_edits           whether the journal still has what was durable
replica_snapshot     what its snapshots hold (pure)
"""
