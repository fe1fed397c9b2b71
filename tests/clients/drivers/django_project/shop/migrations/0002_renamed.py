"""A model and fields get other names; the tables have rows by then."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

from typing import Any

from django.db import migrations, models


def fill(apps: Any, _editor: Any) -> None:
    """Rows of the old shape."""
    writer = apps.get_model("shop", "Writer").objects.create(name="Ada", email="ada@example.org")
    apps.get_model("shop", "Book").objects.create(
        title="Notes", writer=writer, price="12.50", facts={"pages": 66}
    )


def empty(apps: Any, _editor: Any) -> None:
    """The way back."""
    apps.get_model("shop", "Order").objects.all().delete()
    apps.get_model("shop", "Book").objects.all().delete()
    apps.get_model("shop", "Writer").objects.all().delete()


class Migration(migrations.Migration):
    """See the module."""

    dependencies = (("shop", "0001_initial"),)
    operations = (
        migrations.RunPython(fill, empty),
        migrations.RenameModel("Writer", "Author"),
        migrations.RenameField("author", "name", "full_name"),
        migrations.RenameField("book", "writer", "author"),
        migrations.AlterField("author", "full_name", models.CharField(max_length=120)),
        migrations.AlterModelOptions("author", {"ordering": ("full_name",)}),
        migrations.AddField("author", "born", models.DateField(blank=True, null=True)),
    )
