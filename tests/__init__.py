"""Tests, mirroring the packages; see STYLE.md section 7 for the layout."""
