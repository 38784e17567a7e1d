"""The stores in which journals live. Entry points find them; the framework never imports them."""
