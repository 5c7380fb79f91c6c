"""WebShop: shopping for real or generated products, as text, as a web site, and in a browser.

`rules` moves between pages, `shop` joins catalogue, goals and search, `build` imports files.
"""
