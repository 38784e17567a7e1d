"""Appends before they are entries.

append_machine    gathers appends into groups, bounds what is pending (pure)
grouping          which appends share an entry, and when it is sent (pure)
record_checks     what a record must be (pure)
"""
