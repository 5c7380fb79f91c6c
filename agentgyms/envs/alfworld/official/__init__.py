"""The official ALFWorld: its game files, its data set, and its engine in a child process."""
