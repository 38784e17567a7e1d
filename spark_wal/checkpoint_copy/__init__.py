"""A stopped query's checkpoint from one place to another: ``bk checkpoint copy FROM TO``.

Read in this order
    contents        what belongs to a checkpoint, in which order it is copied, what an unfinished copy looks like
    places          what a place must be able to do; which one an address means
    local_place, gateway_place, arrow_place     a directory; a WebHDFS server; S3, HDFS and others by pyarrow
    copier          does it: copies, reads back, compares; can go on where an earlier one ended

Promises: an unfinished copy is never taken for a checkpoint, by us or by Spark (its ``metadata`` is one that Spark
refuses to read, until everything else is there and verified); every byte of the target was read back; a source that
changes meanwhile ends the copy; the source is only read.
"""
