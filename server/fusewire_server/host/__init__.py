"""What the process asks of its machine: memory, garbage collection, timers, priority, and its parent."""
