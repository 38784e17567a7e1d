"""A bookie's disk. :class:`~bookkeeper.storage.engine.Engine` is its one door; calls go down this stack.

    engine                          the front: every public method, opening and closing (wired by ``assembly``)
    |
    +-- base/disk_state             writable, read-only, failed, closed
    +-- updates/ledger_updates      adds, fences, explicit LACs, removals: admitted or refused, then recorded;
    |                               the one place where an entry's place goes into its ledger's index
    +-- updates/lac_waiters         who waits for a last add confirmed
    |
    +-- checkpoint/checkpointer     the manifest; when a checkpoint is made and what it covers
    |     +-- disk_space                  free space: whether the disk is read-only, and the reserve
    |     +-- entry_log/write_behind      how far entry logs are synced between checkpoints
    |     `-- checkpoint/checkpoint       the work of one checkpoint, on its thread
    |
    +-- compaction/compactor        copies what lives in entry logs of which little lives, and has them removed
    |     +-- compaction/schedule         the machine: when, which log, how fast
    |     `-- compaction/compaction_steps       one run
    |
    +-- scrub/scrubber              reads and checks every stored byte within a period; says which ledgers are suspect
    |     +-- scrub/schedule              the machine: which file, how fast
    |     `-- scrub/file_checks           each kind of file, piece by piece
    |
    +-- reads/ledger_reads          what can be asked of a ledger; honest negatives
    |     +-- reads/cached_reads          runs of reads that need not wait for the disk
    |     +-- reads/entry_reader          all other reads
    |     |-- reads/unwritten             what of it is still in memory
    |     `-- reads/entry_places          where an entry lives; index pages, open index segments
    |
    +-- journal/group_commit        hands groups to the workers, calls those who waited
    |     +-- journal/write_schedule      the machine: when a group is written, and on which thread
    |     |     `-- journal/inline_sync         whether syncs are quick enough for the loop's thread
    |     +-- journal/deferred_start      the machine: when records are written that nobody waits for
    |     +-- journal/group_sequence      the machine: order, numbers and states of the groups in memory
    |     |     `-- journal/pending_group       one group: its records, and who waits for it
    |     +-- journal/group_writer        the open journal file
    |     +-- journal/spare_files         journal files that are ready to be used next
    |     `-- journal/entry_log_layout    which logs records go to
    |           |-- shared_log/shared_layout        all into one
    |     |           |     `-- entry_log/entry_log_file      the open entry log
    |           `-- ledger_logs/ledger_log_layout     a log per ledger: durable groups are taken in, written late
    |                 |-- ledger_logs/ledger_logs          the machine: what goes where, and is written when
    |                 `-- ledger_logs/log_writes           writes, makes, syncs and closes files
    |
    +-- entry_log/entry_logs        every entry log: its end, its ledgers, its descriptor
    +-- ledgers/ledger_table        every ledger here, the deleted ones, what no checkpoint has written yet
    |     `-- ledgers/known_ledgers       those that were asked for, and behind them what segments know
    |           |-- ledgers/resident_ledgers    the machine: which of them stay in memory
    |           |-- index/segment_table         what one index segment knows, as it is in the file
    |           `-- index/entry_index           where the entries of a ledger are
    `-- ledgers/unknowns            limbo, index damage, doubt: what this disk cannot answer for

Each line owns what it names: nothing else changes it, others ask or tell it. The parts share what is in ``base``: the
five ``workers``, ``config``, and the counters of ``results``, of which each is counted in one place. Three things go
up, all wired in ``assembly``: group commit reports to its ``CommitObserver``; the space and the checkpointer set the
disk's state; a failed sync anywhere ends group commit.

Entries come in as ``updates/record_runs`` says. Before there is an engine, ``start/start`` reads the directory and
makes what the engine begins with. The bytes of files are in ``journal/journal_format``, ``entry_log/entry_log_file``,
``index/index_segment``, ``base/manifest``, ``index/ledger_descriptor``; how files come to be and are replaced, in
``base/durable_file``. Whether they are whole is checked in ``scrub``, by the same codecs, with an engine or without.

Nothing is imported here: a configuration needs ``base/config`` only.
"""
