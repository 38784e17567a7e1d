"""Which gateway owns the namespace, what it stands on, what the others do meanwhile; operations on files, and what is
told of changes."""
