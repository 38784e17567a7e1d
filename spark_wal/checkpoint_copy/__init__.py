"""Copy a stopped query's checkpoint to another store: ``bk checkpoint copy FROM TO``.

Read in this order
    contents        what belongs to a checkpoint, in which order it is copied, what an unfinished copy looks like
    stores          what a store must be able to do;  open_store: which store an address means
    local_store, gateway_store, arrow_store     a directory; a WebHDFS server; S3, HDFS and others by pyarrow
    copier          copies, reads back, compares; can finish an unfinished copy

Promises: an unfinished copy is never taken for a checkpoint, by us or by Spark (its ``metadata`` is one that Spark
refuses to read, until everything else is there and verified); every byte of the target was read back; a source that
changes meanwhile ends the copy; the source is only read.
"""
