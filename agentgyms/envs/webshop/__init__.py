"""WebShop: shopping for real or generated products, as text, as a web site, and in a browser.

Takes `search[...]` and `click[...]`; returns pages as text and the reward of the purchase. `rules`
moves between pages, `shop` joins catalogue, goals and search, `build` imports the official files.
"""
