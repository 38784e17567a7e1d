"""What a checkpoint of Structured Streaming holds, whether it is whole, and how a query goes back.

Read in this order
    layout                   what each path is;  logs: the text files;  lz4_blocks, state_files: whether state is whole
    checkpoint               one checkpoint, as its listing and its logs show it
    rebuild                  from which files a version of the state can be built
    fsck                     what is damaged, and what helps
    rollback, sinks          what goes when a query goes back to a batch
    changes, difference      in which batches two checkpoints differ
    reader                   reads all that from a store of ``checkpoint_copy``

Everything but ``reader`` is pure.
"""
