"""The program of `fusewire demo`, which learns to read digits."""
