"""A page that learns in the browser: choose items, rate them, see the others in your order."""
