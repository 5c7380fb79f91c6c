"""Arrays on disk, which any number of processes map into memory."""
