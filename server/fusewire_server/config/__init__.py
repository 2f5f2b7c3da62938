"""Settings, their sources and limits, and the version."""
