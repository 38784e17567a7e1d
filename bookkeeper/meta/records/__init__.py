"""What is kept in a metadata store: each record with its path, its bytes, and its compare-and-set.

paths, layout                     which value lives under which path
ledgers, ledger_format            the metadata of ledgers
followed_ledgers                  the same for who keeps all of them, and looks again
ledger_ids, deleted_ids           new ids; ids that are never given out again
deleted_ledgers, ledger_owners    ledgers that can be brought back; owners that metadata do not name
under_replication                 the list of under-replicated ledgers
bookies, service_info, cookies    which bookies are registered, where they listen, which directory belongs to which
locations, read_only              where bookies stand; orders to take no entries
autorecovery                      election, locks and progress of auditors and workers
access_policy, access_servers     who may do what; what each server does with that
disks                             how far each bookie's disk was
lineage, rollback                 moves of the metadata from store to store; noticing metadata of an older state
"""
