"""Graph attention without materialized messages."""
