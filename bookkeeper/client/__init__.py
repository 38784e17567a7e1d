"""THE CLIENT: what applications hold. Shells around the machines of :mod:`bookkeeper.ledger`.

Read in this order
    config, services, tasks     what an application may set; what all handles of one client share; tasks with an owner
    bookkeeper, openers         connect, create, open, delete, list; from an address to a cluster
    write                       appending, and the shell around ``ledger.writer``
    read                        reading and tailing, and the shells around ``ledger.reader``
    ledgers                     creating, recovering, deleting a ledger; its metadata as a handle last saw them
    bookies                     who is there; connections; one question to one bookie; back-pressure
    operators                   what operators ask: who is there, who holds what; ledgers without their passwords
    loop_affinity               what users are told who come from another event loop

No file in here adds up a quorum, orders acks, or decides what a ledger's state allows: a file performs effects and
reports events; what they mean is decided in :mod:`bookkeeper.ledger`.
"""

from __future__ import annotations
