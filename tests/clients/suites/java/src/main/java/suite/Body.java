package suite;

/** What one case does; it throws if an answer is not the one wanted. */
@FunctionalInterface
interface Body {
    void run(Place place) throws Exception;
}
