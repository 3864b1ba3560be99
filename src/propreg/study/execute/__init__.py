"""Executing an experiment: trains what is missing and records it."""
