"""Which gateway owns the namespace, where it is stored, and what the other gateways do; operations on files; the feed
of changes."""
