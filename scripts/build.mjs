// Placeholder until the bundle is wired.
