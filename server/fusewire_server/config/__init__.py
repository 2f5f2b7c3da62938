"""Settings, and the version."""
