"""A shop's products, stored on disk or generated, with what goals and search need of them."""
