"""What viewers that other people make show of models: their own code opens what is written for them."""
