"""Models with what applications use most; the migrations beside lead to them step by step."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

import itertools
import uuid
from typing import Any

from django.conf import settings
from django.db import models

_ids = itertools.count(1_000)


def new_id() -> uuid.UUID:
    """Unlike uuid4() the same in every run."""
    return uuid.UUID(int=next(_ids))


class Author(models.Model):
    """Renamed from Writer."""

    full_name: Any = models.CharField(max_length=120)
    email: Any = models.EmailField(unique=True)
    born: Any = models.DateField(null=True, blank=True)

    class Meta:
        ordering = ("full_name",)

    def __str__(self) -> str:
        return str(self.full_name)


class Tag(models.Model):
    """At the other end of a many-to-many relation."""

    name: Any = models.SlugField(max_length=30)


class Book(models.Model):
    """Something of everything."""

    id: Any = models.UUIDField(primary_key=True, default=new_id, editable=False)
    title: Any = models.CharField(max_length=200, db_index=True)
    author: Any = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books")
    tags: Any = models.ManyToManyField(Tag, related_name="books", blank=True)
    price: Any = models.DecimalField(max_digits=8, decimal_places=2)
    stock: Any = models.PositiveIntegerField(default=0)
    facts: Any = models.JSONField(default=dict)
    published: Any = models.DateTimeField(null=True)
    rating: Any = models.FloatField(null=True)
    slug: Any = models.SlugField(max_length=60, default="")
    is_open: Any = models.BooleanField(default=True)

    class Meta:
        unique_together = (("title", "author"),)
        indexes = (models.Index(fields=["author", "-published"], name="book_author_published"),)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(price__gte=0), name="book_price_not_negative"
            ),
        )


class Order(models.Model):
    """Refers to a user of contrib.auth, who may go."""

    buyer: Any = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    book: Any = models.ForeignKey(Book, on_delete=models.PROTECT)
    count: Any = models.SmallIntegerField(default=1)
    placed: Any = models.DateTimeField(auto_now_add=True)
    took: Any = models.DurationField(null=True)
    receipt: Any = models.BinaryField(null=True)
