"""A column with an index goes again."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

from django.db import migrations


class Migration(migrations.Migration):
    """See the module."""

    dependencies = (("shop", "0003_more"),)
    operations = (migrations.RemoveField("book", "shelf"),)
