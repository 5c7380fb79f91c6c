"""`/play`: one page (HTML, JavaScript) for every environment, to play on and replay recordings."""
