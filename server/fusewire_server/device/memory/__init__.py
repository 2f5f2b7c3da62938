"""Who holds memory, who may take more."""
