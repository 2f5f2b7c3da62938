"""The engine of one device in this process, or a process for each of several."""
