"""The admin, and nothing else."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
