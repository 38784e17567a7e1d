"""From a directory to a disk that serves.

start               the whole of it: lock, scan, replay, cover
scan_files          what is there: manifest, entry logs, index; nothing is written
|-- inventory           what was found, data
|-- replayed_ledgers    the ledgers, from index segments and records
`-- losses              the machine: what is missing or damaged, and what may still go
replay              the journal behind the mark, into a new entry log
|-- group_continuity    the machine: whether groups follow one another without a gap
|-- replayed_groups     which groups were replayed, and what of an entry log comes from them alone
|-- evidence            what shows that the journal once held more than can be read from it
`-- orphaned_logs       after a loss: what entry logs hold beyond what the manifest says of them
cover               a new journal file and a checkpoint; then files that nobody names are removed
directory_id        the random id of a directory, in every data file
"""
