"""What the admin's pages show."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

from django.contrib import admin

from tests.clients.drivers.django_project.shop.models import Author, Book


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list with everything that makes queries."""

    list_display = ("title", "author", "price")
    list_filter = ("is_open", "author")
    search_fields = ("title", "author__full_name")
    date_hierarchy = "published"


admin.site.register(Author)
