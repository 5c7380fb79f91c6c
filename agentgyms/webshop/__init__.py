"""WebShop: a shop of real or generated products, as text, as a web site, and in a browser."""
