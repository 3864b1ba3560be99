"""Graph-level tasks: OGB's molecule models with P-reg on their node embeddings, many trainings as one program."""
