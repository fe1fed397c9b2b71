"""The models of the Tortoise cases."""

import enum

from tortoise import fields
from tortoise.models import Model


class State(enum.StrEnum):
    """Of an event."""

    NEW = "new"
    DONE = "done"


class Team(Model):
    """Takes part in events."""

    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=40, unique=True)

    class Meta:
        """Its name is told apart."""

        table = "to_team"


class Event(Model):
    """With a column of every kind."""

    id = fields.UUIDField(primary_key=True)
    name = fields.TextField()
    state = fields.CharEnumField(State, default=State.NEW)
    fee = fields.DecimalField(max_digits=10, decimal_places=2, default=0)
    data = fields.JSONField(default=dict)
    at = fields.DatetimeField(auto_now_add=True, db_index=True)
    day = fields.DateField(null=True)
    owner: fields.ForeignKeyRelation[Team] = fields.ForeignKeyField("models.Team", "owned")
    teams: fields.ManyToManyRelation[Team] = fields.ManyToManyField("models.Team", "to_event_team")

    class Meta:
        """Two columns are unique."""

        table = "to_event"
        unique_together = (("name", "owner"),)
