"""The search engine: BM25 with Lucene's arithmetic."""
