"""A WebHDFS server whose files are edits of a journal. Made for Spark's checkpoints; fsspec, pyarrow,
HdfsCLI and Hadoop's own shell are served too.

Rooms, each below the next, which imports it
    files         the tree: paths, inodes, records of changes, and ``namespace``, the machine that applies them
    contents      bytes: ``uploads`` in progress, and blobs of large files (``blob_store``, ``ledger_blobs``)
    ownership     who answers: the owner applies a change, journals it, and answers when it is durable; lease, replay,
                  snapshots; operations on files (``file_system``), and a feed of changes (``events``)
    access        who may use the gateway: certificates, tokens, access tokens, and checks for changed files
    http          WebHDFS's parameters, operations and JSON shapes; the HTTP shell; checksums, metrics
    service       one gateway, from its options to its end
``errors`` has the errors that a client can get, ``config`` what an operator may set, ``growing_paths`` which files are
read while they are written.

Promises: a name is created once; a file is visible complete or not at all; everyone sees what was acknowledged; a
rename is atomic, and durable before the reply; damage is an error, never "no such file". Reads are linearizable: a
gateway answers nothing from memory unless it is certainly the owner, and no reply shows what is not durable.
"""
