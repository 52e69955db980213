"""Denoising, X the identity: total variation and trend filtering."""
