"""The search server of SearchQA: `python -m env_servers.retriever`.

Takes queries in the forms of Search-R1 and SkyRL; returns ranked documents (`app`).
"""
