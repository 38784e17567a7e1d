"""Copy a stopped query's checkpoint to another store: ``bk checkpoint copy FROM TO``.

Read in this order
    contents        what belongs to a checkpoint, in which order it is copied, how to tell an unfinished copy
    stores          what a store must do;  open_store: which store an address means
    local_store, gateway_store, arrow_store     a directory; a WebHDFS server; S3, HDFS and others by pyarrow
    copier          copies, reads back, compares; can finish an unfinished copy

Promises: neither we nor Spark take an unfinished copy for a checkpoint, because Spark refuses to read its ``metadata``
until everything else is there and verified. Every byte of the target was read back. If the source changes meanwhile,
the copy fails. The source is only read.
"""
