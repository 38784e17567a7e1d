"""THE CLIENT: what applications hold. Shells around the machines of :mod:`bookkeeper.ledger`.

Read in this order
    config          what an application may set
    bookkeeper      connect, create, open, delete, list
    ledger_handle   appending: a shell around ``ledger.writer``
    ensemble_change finding stand-ins and recording them by compare-and-set
    read_handle     reading and following: a shell around ``ledger.reader`` and ``ledger.last_add_confirmed``
    recover         closing someone else's ledger: a shell around ``ledger.recovery``
    bookie_pool     connections per bookie, made when needed
    bookie_watcher  who is there, who is quarantined

No file in here compares quorums, entry ids against a last add confirmed, or ledger states: a file performs
effects and reports events; what they mean is decided in :mod:`bookkeeper.ledger`.
"""

from __future__ import annotations
