"""Who may use the gateway: the listener's rules, and authentication by token or certificate."""
