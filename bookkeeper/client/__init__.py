"""THE CLIENT: what applications hold. Shells around the machines of :mod:`bookkeeper.ledger`.

Read in this order
    config, services    what an application may set; what all handles of one client share
    bookkeeper, creating, openers
                        connect, create, open, delete, list; what a new ledger may be; from an address to a cluster
    ledger_handle, advanced_handle
                        appending, as applications see it: numbered here, or with ids that the application chooses
    callers, packets    who waits for which entry; frames that may have to be sent again
    writer_shell        the shell around ``ledger.writer``: effects performed, events reported
    add_lane, refusals  the way of one writer's adds to one bookie; what it had no room for is sent again
    ensemble_change, ledger_record, life
                        stand-ins and closing by compare-and-set; a failed bookie that answers again
    underreplicated     what is left for those who re-replicate
    read_handle         reading and tailing, as applications see it
    reading, single_reads
                        the shell around ``ledger.reader``: runs, batches, neighbours fetched together
    following           the shell around ``ledger.last_add_confirmed``: coverage, long poll, metadata
    deleting            deleting a ledger, whose writer is stopped first
    recover             the shell around ``ledger.recovery``: closing someone else's ledger
    operators           what operators ask: who is there, who holds what; ledgers without their passwords
    asking, bookie_pool, bookie_watcher, tasks
                        one question to one bookie; connections; who is there; tasks with an owner

No file in here adds up a quorum, orders acks, or decides what a ledger's state allows: a file performs effects and
reports events; what they mean is decided in :mod:`bookkeeper.ledger`.
"""

from __future__ import annotations
