"""The web site of the WebShop: the shop as pages for people, over the rules of the environment.

Takes requests of a browser; returns HTML made from the same views as the text observations.
`browser_control` is the connection to the environments that drive the site.
"""

from env_servers.webshop_site.app import create_site

__all__ = ["create_site"]
