"""A process that commits numbers and tells each one once it is durable; killed by its parent."""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from storage.stash import Put, Require
from storage.stash_sqlite import SqliteStash


async def commit_forever(path: Path) -> None:
    stash = await SqliteStash.open(path)
    epoch = await stash.fence()
    number = len(await stash.scan("numbers"))
    while True:
        key, value = f"{number:09d}", number.to_bytes(8, "big")
        writes = [Put("numbers", key, value), Put("mirror", key, value)]
        await stash.transact(epoch, writes, requires=[Require("numbers", key, None)])
        os.write(1, f"{number}\n".encode())
        number += 1


asyncio.run(commit_forever(Path(sys.argv[1])))
