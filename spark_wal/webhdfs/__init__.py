"""A WebHDFS server whose files are edits of a journal. Made for Spark's checkpoints; fsspec, pyarrow,
HdfsCLI and Hadoop's own shell are served too.

Read in this order
    paths, refusals         what a path is; the failures a client can be told
    inodes, records         what a file is; what may happen to the tree, as journal records
    namespace               the machine: applies records, one after the other, to the tree
    snapshot                the whole tree as bytes
    temp_files, uploads     Spark's temporary files that were left behind; bytes on their way in
    content                 where bytes live that are too large for the journal
    journal, lease          what the owner stands on: records in order, durable; who may answer at all
    gateway                 the owner: applies, journals, answers when durable; replay, snapshots, orphans
    tokens, tls, revocations     who may ask: tokens and their file; certificates, and who has lost theirs
    authentication, oauth2, access     who it is; access tokens; the listener's rules, and files that change
    connection_limits, listening, seldom     how many may come, and how long they may take; the port; log lines
    parameters, replies     WebHDFS's query parameters and JSON shapes
    operations, http, http_connection        the WebHDFS operations; the HTTP shell
    events, upload_log, checksum    a feed of what happened; what a kill cut; HDFS's composite checksum

Promises (numbers as in docs/rules.md): S1 a name is created once; S2 a file is visible complete or not
at all; S3 what was acknowledged is listed, for everyone; S4 a rename is atomic and durable before the
reply; S9 damage is an error, never "no such file". Reads are linearizable: a gateway that cannot be sure
to be the owner still answers nothing from memory, and no reply shows what is not durable.
"""
