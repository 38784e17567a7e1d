"""Positions in a stream.

locator           the position of a seek, the number of a position, the end
seek_target       which segment a seek leads to (pure)
entry_search      which entry of a segment it is in (pure)
splits            ranges of about equal size, for scans side by side (pure)
"""
