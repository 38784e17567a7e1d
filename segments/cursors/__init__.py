"""Cursors: positions in a stream that outlive their readers.

cursor          what an application holds
cursor_front    what is the same behind gateways
cursor_owner    a cursor's node in its owner's hands; gathers acknowledgements
cursor_node   the records at their paths
cursor_state    the record, its legal steps, its history
cursor_format   the record as bytes
acked_ranges    which records are done
"""
