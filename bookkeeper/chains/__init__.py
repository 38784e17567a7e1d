"""What every chain of ledgers behind a compare-and-set node needs, whatever the chain holds.

A chain's node names its ledgers, and one process at a time owns it, by an epoch.

chain_node      the node at its path: read, create, replace a version
owned_node      claim the next epoch; then each step is one compare-and-set, until another owner claims
password        of the ledgers of a new chain, which its node keeps
orphans         ledgers that carry a chain's tags and that no node names

What a node holds, and which steps are legal, is the chain's own business: a journal's segments with transaction ids
are ``journal_manager.journals.chain``.
"""
