"""Layers and containers of layers."""
