"""The `fusewire` command."""
