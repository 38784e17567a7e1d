"""Reads what nobody asked for, before somebody does: every stored byte is checked within a period (K30).

damage           what is wrong with a file, and of which ledgers entries may be lost
file_checks      each kind of file, read a piece at a time and checked by its own codec; also without a running bookie
"""
