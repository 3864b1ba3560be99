"""Sparse products for a batch of replicas."""
