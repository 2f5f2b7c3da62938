"""On the loop thread: frames become orders, reports answers."""
