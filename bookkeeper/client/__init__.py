"""THE CLIENT: what applications hold. Shells around the machines of :mod:`bookkeeper.ledger`.

Rooms and modules, each above those that it imports
    operators           what operators ask: who is there, who holds what; ledgers without their passwords
    bookkeeper          connect, create, open, delete, list; ``openers``: from an address to a cluster
    ledgers             creating, recovering and deleting ledgers
    read                reading and tailing, and the shells around the machines that read
    write               appending, and the shell around the machine that writes
    ledger_view, bookie_request
                        metadata as one handle last saw them; one request to one bookie
    closing_advice      tells bookies that a ledger is closed
    tail_caches         the newest entries that this client has written, for its own readers
    services            what all handles of one client share
    free_space          which bookies have how much room
    known               what a client knows, for clients elsewhere that ask no metadata store
    bookies             which bookies are there, connections, adds that are sent again
    arguments           what callers may have mistaken
    config, entry, loop_affinity, tasks
                        what an application may set; an entry that was read; the loop and its tasks

No file in here adds up a quorum, orders acks, or decides what a ledger's state allows. A file performs effects and
reports events; :mod:`bookkeeper.ledger` decides what they mean.
"""
