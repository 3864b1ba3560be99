"""What an independent prototype that followed the official rules reached, and how far from it we may be."""

# Test accuracy of plain GCN, GCN+P-reg with μ picked on validation, and with the best μ on test, in per cent.
EXPECTED = {"cora": (79.7, 82.8, 82.8), "citeseer": (69.2, 70.8, 71.6), "pubmed": (76.5, 77.3, 77.4)}
ALLOWED = 0.6  # points
