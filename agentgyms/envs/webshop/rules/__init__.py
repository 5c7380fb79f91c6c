"""The rules of the shop as pure functions.

Takes a state and an action; returns the next state (`transitions`), its page (`page_views`) and the
page's text (`page_texts`). `session` is one visit, `compat` differs as the released WebShop does.
"""
