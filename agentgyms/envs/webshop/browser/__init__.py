"""WebShop in a real browser: clicks and types in Chromium, and reads what it shows."""
