"""Who may call: tokens, and the interceptor that asks for them."""
