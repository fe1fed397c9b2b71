"""Caches of plans are bounded by number and by size."""

from coordinator.planning.lru_cache import LruMapping
from coordinator.planning.plan_cache import CACHED_TEXT_MAX, CACHED_TEXTS_MAX, PlanCache


def test_the_oldest_entries_make_room() -> None:
    cache: LruMapping[str, int] = LruMapping(3, 100)
    for number, name in enumerate("abc"):
        cache.put(name, number, 30)
    assert cache.get("a") == 0
    cache.put("d", 3, 5)
    assert [cache.get(name) for name in "abcd"] == [0, None, 2, 3]
    cache.put("e", 4, 90)
    assert [cache.get(name) for name in "acde"] == [None, None, 3, 4]


def test_an_entry_that_is_replaced_counts_once() -> None:
    cache: LruMapping[str, int] = LruMapping(3, 100)
    for number in range(10):
        cache.put("a", number, 60)
    cache.put("b", 1, 40)
    assert [cache.get(name) for name in "ab"] == [9, 1]
    cache.put("c", 1, 1_000)
    assert [cache.get(name) for name in "abc"] == [None, None, None]


def test_long_statements_do_not_fill_the_plan_cache() -> None:
    cache = PlanCache()
    texts = [f"SELECT {number}{' ' * (CACHED_TEXT_MAX - 20)}" for number in range(60)]
    trees = [cache.parse(text) for text in texts]
    newest = reversed(list(zip(texts, trees, strict=True)))
    kept = [cache.parse(text) is tree for text, tree in newest]
    assert kept[0]
    assert 0 < sum(kept) <= CACHED_TEXTS_MAX // (CACHED_TEXT_MAX - 20)
