"""What is learned: a task holds the data on its device and the targets of each replica."""
