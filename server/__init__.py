"""The HTTP server: one Connexion app a surface behind a dispatcher, and the command that runs it."""
