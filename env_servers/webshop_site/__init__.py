"""The web site of the WebShop: pages for people, over the rules and views of the environment."""

from env_servers.webshop_site.app import create_site

__all__ = ["create_site"]
