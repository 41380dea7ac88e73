"""The records that PyTorch ships of its operators, modules and optimizers, run on chainrule."""
