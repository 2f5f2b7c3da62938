"""Overloads to kernels.

Which kernel of the tables each has, what runs where there is none, and what is raised where one refuses.
"""
