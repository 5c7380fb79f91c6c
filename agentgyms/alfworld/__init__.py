"""ALFWorld: household tasks in text, played by an engine of this package's own."""
