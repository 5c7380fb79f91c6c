"""Search-augmented question answering: a question, a search engine, and an exact answer."""
