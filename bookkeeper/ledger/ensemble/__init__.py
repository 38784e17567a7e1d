"""The ensemble of one writer: its bookies, what each has acknowledged, which of them failed, and what follows.

writer_ensemble   the machine: told what happened to a bookie, it answers with a verdict
sync_policy       what an ack means: durable, or written and to be forced
slow_bookies      measures which live bookies stand still or trail
member            one bookie of it
acks              what one bookie has acknowledged
replan            plans the change of an ensemble from the metadata that are stored now

Which bookies a new ledger gets is decided in :mod:`bookkeeper.ledger.placement`.
"""
