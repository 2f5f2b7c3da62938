"""The SDK: ordinary array code whose operations run on a Fusewire server."""
