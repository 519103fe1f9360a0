"""Compile plain functions to machine code."""
