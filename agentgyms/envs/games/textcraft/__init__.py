"""TextCraft: recipes and what crafting does (`book`), its tasks (`worlds`, `official`), `plans`."""
