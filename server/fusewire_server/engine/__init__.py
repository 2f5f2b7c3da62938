"""The engine on the loop: frames become orders, reports become answers."""
