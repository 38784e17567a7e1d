"""What is kept in a metadata store: each record with its path, its bytes, and its compare-and-set.

paths, layout                     which value lives under which path
ledgers, ledger_format            the metadata of ledgers
ledger_ids, deleted_ids           new ids; ids that are never given out again
bookies, service_info, cookies    who is there, where it listens, which directory is whose
disks                             how far each bookie's disk was
lineage, rollback                 moves of the metadata from store to store; metadata that are older than was seen
"""
