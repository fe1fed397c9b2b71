"""A Django project, played by `tests/drivers/test_django.py`."""
