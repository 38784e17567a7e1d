"""From a directory to a disk that serves.

replay          locks and looks at the directory, replays the journal
evidence        what shows that the journal once held more than can be read from it
orphaned_logs   after a loss: what entry logs hold beyond what the manifest says of them
"""
