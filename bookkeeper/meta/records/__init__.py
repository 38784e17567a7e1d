"""What is kept in a metadata store: each record with its path, its bytes, and its compare-and-set.

paths, layout                     which value lives under which path
ledgers, ledger_format            the metadata of ledgers
ledger_ids, deleted_ids           new ids; ids that are never given out again
under_replication                 the list of under-replicated ledgers
bookies, service_info, cookies    which bookies are registered, where they listen, which directory belongs to which
disks                             how far each bookie's disk was
lineage, rollback                 moves of the metadata from store to store; noticing metadata of an older state
"""
