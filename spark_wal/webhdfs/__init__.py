"""A WebHDFS server whose files are edits of a journal. Made for Spark's checkpoints; fsspec, pyarrow,
HdfsCLI and Hadoop's own shell are served too.

Rooms, each below the next, which imports it
    files         the tree: paths, inodes, records of changes, and ``namespace``, the machine that applies them
    contents      bytes: on their way in (``uploads``), and where large ones live (``blob_store``, ``ledger_blobs``)
    ownership     who answers: ``gateway`` applies, journals, and answers when it is durable; lease, replay, snapshots;
                  operations on files (``file_system``), and a feed of changes (``events``)
    access        who may ask: certificates, tokens, access tokens, and files that change
    http          WebHDFS's parameters, operations and JSON shapes; the HTTP shell; checksums, metrics
    service       one gateway, from its options to its end
``errors`` has the failures that a client can be told.

Promises: a name is created once; a file is visible complete or not at all; what was acknowledged is listed, for
everyone; a rename is atomic and durable before the reply; damage is an error, never "no such file". Reads are
linearizable: a gateway that cannot be sure to be the owner still answers nothing from memory, and no reply shows what
is not durable.
"""
