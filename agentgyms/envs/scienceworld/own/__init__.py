"""ScienceWorld's engine in Python, without a JVM."""
