"""WebShop in a real browser.

Takes actions; clicks and types in Chromium and reads what it shows. `env` is the environment,
`driver` and `launch` run the browser, `tab` reads one tab, `site` runs the web site.
"""
