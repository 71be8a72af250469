"""Positions, games, trees and measures to look at."""
