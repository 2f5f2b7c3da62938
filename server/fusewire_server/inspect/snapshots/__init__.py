"""Plain data of the engine's tables."""
