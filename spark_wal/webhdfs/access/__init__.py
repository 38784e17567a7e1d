"""Who may ask: the listener's rules and authentication by token or certificate."""
