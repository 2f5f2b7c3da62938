"""The device of PyTorch. These tests need torch: `make test-torch`."""
