"""Goals and rewards: what to buy, and how well a purchase matches it."""
