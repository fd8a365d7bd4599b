"""How figures are drawn, whatever they show."""
