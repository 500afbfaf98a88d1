"""Policies: pure functions from a view to proposals. Which of them happen is the arbiter's choice."""
