"""The `fusewire` command: what can be typed, and what it prints."""
