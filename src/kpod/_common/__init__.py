"""Used everywhere: types, words, warnings, the operating system."""
