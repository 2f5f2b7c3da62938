"""The system under test."""
