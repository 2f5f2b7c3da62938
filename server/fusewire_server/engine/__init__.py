"""On the engine thread: frames become orders, reports answers."""
