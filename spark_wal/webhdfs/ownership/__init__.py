"""Which gateway owns the namespace, what it stands on, and what the others do meanwhile."""
