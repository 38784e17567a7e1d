"""Who may ask: the listener's rules, authentication by token or certificate, the OAuth2 token endpoint."""
