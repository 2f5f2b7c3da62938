"""The program of `fusewire demo`."""
