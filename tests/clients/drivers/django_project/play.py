"""A Django project against a database: `python -m tests.clients.drivers.django_project.play DSN`.

Prints what it sees, without what differs from run to run, so that two databases can be compared.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# Django has no types of its own.

import sys

import psycopg


def configure(dsn: str) -> None:
    """Django's settings, with this database."""
    import django
    from django.conf import settings

    found = psycopg.conninfo.conninfo_to_dict(dsn)
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": found["dbname"],
                "USER": found["user"],
                "PASSWORD": found.get("password", ""),
                "HOST": found["host"],
                "PORT": found["port"],
            }
        },
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django.contrib.sessions",
            "django.contrib.messages",
            "django.contrib.admin",
            "tests.clients.drivers.django_project.shop",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        ROOT_URLCONF="tests.clients.drivers.django_project.urls",
        ALLOWED_HOSTS=["testserver"],
        STATIC_URL="static/",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        SECRET_KEY="only for tests",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        TIME_ZONE="UTC",
        USE_TZ=True,
    )
    django.setup()


if __name__ == "__main__":
    configure(sys.argv[1])
    from tests.clients.drivers.django_project.scenes import play

    play()
