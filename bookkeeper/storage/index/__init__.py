"""The index: the place of each entry in the entry logs. ``entry_index`` is in memory, ``index_segment`` in files, and
``segment_table`` is what stays in memory of a file."""
