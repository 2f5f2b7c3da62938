"""Short programs of PyTorch. Each runs on "fusewire" as on "cpu": the name of the device is an argument."""
