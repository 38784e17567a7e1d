"""THE CLIENT: what applications hold. Shells around the machines of :mod:`bookkeeper.ledger`.

Rooms and modules, each above those that it imports
    operators           what operators ask: who is there, who holds what; ledgers without their passwords
    bookkeeper          connect, create, open, delete, list; ``openers``: from an address to a cluster
    ledgers             creating, recovering and deleting ledgers
    read                reading and tailing, and the shells around the machines that read
    write               appending, and the shell around the machine that writes
    ledger_record, bookie_request
                        metadata as one handle last saw them; one question to one bookie
    services            what all handles of one client share
    bookies             who is there, connections, adds that are sent again
    config, entry, loop_affinity, tasks
                        what an application may set; an entry that was read; the loop and its tasks

No file in here adds up a quorum, orders acks, or decides what a ledger's state allows: a file performs effects and
reports events; what they mean is decided in :mod:`bookkeeper.ledger`.
"""

from __future__ import annotations
