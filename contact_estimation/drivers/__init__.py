"""Backends: connect, read, command, close."""
