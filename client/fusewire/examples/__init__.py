"""The program of `fusewire demo`: a network that learns to read digits."""
