"""Reports: the model, and its forms for people and machines."""
