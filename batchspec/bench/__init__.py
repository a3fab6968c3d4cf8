"""Measuring a pair: what runs (`experiments`), how (`measuring`), and what is found (`result`)."""
