"""Who holds memory, and who may take more."""
