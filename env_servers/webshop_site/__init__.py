"""The web site of the WebShop: the shop as pages for people, over the rules of the environment."""

from env_servers.webshop_site.app import create_site

__all__ = ["create_site"]
