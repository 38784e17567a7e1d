"""A journal: what it promises, how it is found by its address and opened, and rules that several stores share.

backend        the contract of a journal, which keeps an edit log's segments
capabilities   what some backends can do besides
journal_uri    an address, taken apart (pure)
registry       finds the backend of an address, by entry points
open_journal   opens a journal by its address
election       who of several replicas may be its active writer
chain          a journal's node: who may write, and its segments in order (pure)
set_rules      which members of a journal set must work, and which may fail (pure)

The stores themselves are :mod:`journal_manager.backends`; nothing here knows them.
"""
