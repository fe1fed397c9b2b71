"""A Django project, played by `tests/clients/drivers/test_django.py`."""
