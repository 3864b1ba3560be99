"""Drawing a figure with Matplotlib."""
