"""Reads what nobody asked for, before somebody does: every stored byte is checked within a period (K30).

damage           what is wrong with a file, and of which ledgers entries may be lost
file_checks      each kind of file, read a piece at a time and checked by its own codec; also without a running bookie
schedule         the machine: which file is next, how fast; passes, and files that somebody doubts
scrub_notes      what outlives a restart: how far a pass has come, which ledgers are suspect
scrubber         the shell: reads on a worker's thread, and sees to it that damage is repaired
"""
