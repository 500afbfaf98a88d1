"""Real objects of the product, driven through every order of events up to a depth."""
