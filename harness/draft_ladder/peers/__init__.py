"""Drafters that others wrote, and the replay of requests that compares them with ours."""
