"""``bk journal``: commands for edit logs and their journals."""
