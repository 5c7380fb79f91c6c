"""Living things: plants, animals and bees, their life cycles and genes, and food."""
