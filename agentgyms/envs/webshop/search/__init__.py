"""The search engine: BM25 with Lucene's arithmetic.

Takes texts and a query; returns the ranked products. `text_index` is the index.
"""
