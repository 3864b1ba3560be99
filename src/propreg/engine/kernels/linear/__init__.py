"""Dense and dropped linear layers."""
