package suite;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The cases of one client; each prints one JSON object when it ends. */
final class Cases {
    static final int SECONDS = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String client;
    private final String version;
    private final PrintStream out;
    private final String only;

    Cases(String client, String version, PrintStream out, String only) {
        this.client = client;
        this.version = version;
        this.out = out;
        this.only = only;
    }

    /** Runs the case in a schema of its own; whatever it ends in, the next one runs. */
    void add(String name, Body body) {
        if (only != null && !(client + "." + name).matches(only)) {
            return;
        }
        Place place = new Place(("j_" + client + "_" + name).toLowerCase(Locale.ROOT)
                .replaceAll("[^a-z0-9]", "_"));
        FutureTask<Void> task = new FutureTask<>(() -> {
            place.prepare();
            body.run(place);
            return null;
        });
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
        String reason = "";
        long begun = System.nanoTime();
        try {
            task.get(SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
            reason = "time-out";
        } catch (ExecutionException error) {
            reason = reason(error.getCause());
            if (System.getenv("SUITE_TRACE") != null) {
                error.getCause().printStackTrace();
            }
        } catch (InterruptedException error) {
            reason = "interrupted";
        }
        place.close();
        System.err.printf("%s.%s %d ms%n", client, name, (System.nanoTime() - begun) / 1_000_000);
        print(name, reason);
    }

    private void print(String name, String reason) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("client", client);
        line.put("version", version);
        line.put("case", name);
        line.put("ok", reason.isEmpty());
        line.put("reason", reason);
        try {
            out.println(JSON.writeValueAsString(line));
            out.flush();
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The innermost SQLSTATE and the first line of its error, or the innermost error. */
    private static String reason(Throwable error) {
        Throwable found = error;
        SQLException sql = null;
        for (Throwable at = error; at != null; at = at.getCause()) {
            found = at;
            if (at instanceof SQLException one) {
                sql = one;
                if (one.getNextException() != null) {
                    sql = one.getNextException();
                }
            }
            if (at.getCause() == at) {
                break;
            }
        }
        String text = sql != null ? sql.getSQLState() + " " + sql.getMessage() : found.toString();
        String first = text.lines().findFirst().orElse("failed");
        return first.length() > 300 ? first.substring(0, 300) : first;
    }
}
