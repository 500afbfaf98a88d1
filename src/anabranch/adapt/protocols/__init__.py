"""Protocols: state machines that carry accepted actions over epochs. Events in, instructions out."""
