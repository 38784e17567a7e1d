"""The index: where in the entry logs each entry lies. ``entry_index`` in memory, ``index_segment`` in files."""
