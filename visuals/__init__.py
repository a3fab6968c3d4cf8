"""Frames as pictures: palette, sentences, heatmaps and the browser player."""
