"""Settings of the process: memory, garbage collection, timers, priority, parent."""
