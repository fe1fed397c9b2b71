"""Columns with defaults, other types, indexes, checks and unique columns."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

from typing import Any

from django.db import migrations, models
from django.db.models import F, Value
from django.db.models.functions import Concat, Lower


def slugs(apps: Any, _editor: Any) -> None:
    """Made from what is there."""
    books = apps.get_model("shop", "Book").objects
    books.update(slug=Concat(Lower(F("title")), Value("-book")))


class Migration(migrations.Migration):
    """See the module."""

    dependencies = (("shop", "0002_renamed"),)
    operations = (
        migrations.AddField("book", "rating", models.FloatField(null=True)),
        migrations.AddField("book", "slug", models.SlugField(default="", max_length=60)),
        migrations.AddField("book", "is_open", models.BooleanField(default=True)),
        migrations.RunPython(slugs, migrations.RunPython.noop),
        migrations.AlterField("book", "price", models.DecimalField(decimal_places=2, max_digits=8)),
        migrations.AlterField("order", "count", models.SmallIntegerField(default=1)),
        migrations.AddField("order", "took", models.DurationField(null=True)),
        migrations.AddField("order", "receipt", models.BinaryField(null=True)),
        migrations.AlterField("author", "email", models.EmailField(max_length=254, unique=True)),
        migrations.AddIndex(
            "book", models.Index(fields=["author", "-published"], name="book_author_published")
        ),
        migrations.AddConstraint(
            "book",
            models.CheckConstraint(
                condition=models.Q(price__gte=0), name="book_price_not_negative"
            ),
        ),
        migrations.AddField("book", "shelf", models.CharField(max_length=5, null=True)),
        migrations.AlterField(
            "book", "shelf", models.CharField(default="none", max_length=9, db_index=True)
        ),
    )
