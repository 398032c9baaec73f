"""What the server costs: ``python -m bench`` starts one, puts load on it and prints and saves the figures."""
