"""Process settings: memory, garbage collection, timers, priority, parent."""
