"""One engine here, or a process for each device."""
