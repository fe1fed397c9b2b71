package suite;

import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * All clients' cases against the server that the environment names; JSON lines on stdout.
 *
 * <p>Arguments: a regular expression over CLIENT.CASE chooses cases.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        System.setOut(System.err);
        java.util.logging.LogManager.getLogManager().reset();
        String only = arguments.length == 0 ? null : arguments[0];
        clients().forEach((client, parts) -> {
            Cases cases = new Cases(client, version(client), out, only);
            parts.forEach(part -> part.accept(cases));
        });
        // Pools and drivers leave threads behind.
        System.exit(0);
    }

    private static Map<String, List<Consumer<Cases>>> clients() {
        Map<String, List<Consumer<Cases>>> all = new LinkedHashMap<>();
        all.put("pgjdbc", List.of(
                PgjdbcConnections::add, PgjdbcStatements::add, PgjdbcTypes::add,
                PgjdbcMetadata::add, PgjdbcSpecials::add));
        all.put("hibernate", List.of(HibernateSchemas::add, HibernateEntities::add));
        all.put("flyway", List.of(FlywayCases::add));
        all.put("liquibase", List.of(LiquibaseCases::add));
        all.put("jooq", List.of(JooqCases::add));
        all.put("mybatis", List.of(MybatisCases::add));
        all.put("spring-jdbc", List.of(SpringCases::add));
        all.put("hikaricp", List.of(HikariCases::add));
        all.put("jdbi", List.of(JdbiCases::add));
        return all;
    }

    /** The version in the name of the client's JAR on the class path. */
    private static String version(String client) {
        String artifact = switch (client) {
            case "pgjdbc" -> "postgresql";
            case "hibernate" -> "hibernate-core";
            case "flyway" -> "flyway-core";
            case "liquibase" -> "liquibase-core";
            case "hikaricp" -> "HikariCP";
            case "jdbi" -> "jdbi3-core";
            default -> client;
        };
        for (String entry : System.getProperty("java.class.path").split(java.io.File.pathSeparator)) {
            String name = new java.io.File(entry).getName();
            if (name.matches(artifact + "-[0-9].*\\.jar")) {
                return name.substring(artifact.length() + 1, name.length() - ".jar".length());
            }
        }
        return "";
    }
}
