"""The shared layout: all ledgers in one entry log, in the order in which their records came.

shared_layout   the layout
"""
