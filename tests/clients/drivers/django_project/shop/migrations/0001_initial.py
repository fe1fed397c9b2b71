"""The first tables."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from tests.clients.drivers.django_project.shop.models import new_id


class Migration(migrations.Migration):
    """See the module."""

    initial = True
    dependencies = (migrations.swappable_dependency(settings.AUTH_USER_MODEL),)
    operations = (
        migrations.CreateModel(
            name="Writer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=50)),
                ("email", models.EmailField(max_length=254)),
            ],
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=30)),
            ],
        ),
        migrations.CreateModel(
            name="Book",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("title", models.CharField(db_index=True, max_length=200)),
                ("price", models.DecimalField(decimal_places=2, max_digits=6)),
                ("stock", models.PositiveIntegerField(default=0)),
                ("facts", models.JSONField(default=dict)),
                ("published", models.DateTimeField(null=True)),
                (
                    "writer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="books",
                        to="shop.writer",
                    ),
                ),
                ("tags", models.ManyToManyField(blank=True, related_name="books", to="shop.tag")),
            ],
            options={"unique_together": {("title", "writer")}},
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("count", models.IntegerField(default=1)),
                ("placed", models.DateTimeField(auto_now_add=True)),
                (
                    "book",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="shop.book"),
                ),
                (
                    "buyer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    )
