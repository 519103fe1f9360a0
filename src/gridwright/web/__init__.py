"""The web page and its REST API: show and start things, hold no logic."""
