"""The engine on the loop thread: frames become orders, reports become answers."""
