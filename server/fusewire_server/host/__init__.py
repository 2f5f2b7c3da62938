"""Process settings: memory, timers, priority."""
