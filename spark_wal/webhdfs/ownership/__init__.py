"""Which gateway owns the namespace, where it is stored, and what the other gateways do.

gateway               one gateway: whether it owns the namespace, and what it does while another one does
namespace_owner       the owner's session, from the replay of the journal to the loss of the lease
file_system           operations on files in that session
growing_file, tail_moves
                      files that are read while they are written; how much of their tails moves at a time
events                a feed of the changes
open_backing, backing, cluster_backing
                      where a namespace is stored: by its address; what is needed; on a cluster
"""
