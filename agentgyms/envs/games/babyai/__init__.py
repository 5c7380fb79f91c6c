"""BabyAI as text: a room and what actions do (`world`), its `levels`, `view`, and `routes`."""
