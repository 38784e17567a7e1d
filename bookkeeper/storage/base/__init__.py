"""What every other room of a bookie's disk stands on; nothing here knows entries.

config         what an operator may set
results        what the engine hands out
durable_file   how files come to be, are replaced and removed; stamps
manifest       which files are the bookie's, and how far they cover the journal
dirty_marker   the file that says that a directory is in use, until a clean stop
workers        the five threads
read_room      memory to read into, again and again
disk_state     writable, read-only, failed, closed
"""
