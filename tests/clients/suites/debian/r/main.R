# The clients of R: RPostgreSQL, upon DBI.
#
# Cases run one after the other and print a line of JSON each; one that fails stops none after it.
# Each has a schema of its own, made afresh.
suppressPackageStartupMessages({
  library(DBI)
  library(RPostgreSQL)
})

equal <- function(found, wanted) {
  same <- all.equal(found, wanted, check.attributes = FALSE)
  if (!isTRUE(same)) stop(paste(c(same, "found", deparse(found)), collapse = " "), call. = FALSE)
}

# The client only warns of an error; its text is asked for.
fails <- function(c, query, text) {
  suppressWarnings(dbGetQuery(c, query))
  said <- dbGetException(c)$errorMsg
  if (!grepl(text, said, fixed = TRUE)) stop(paste("wanted", text, "found", said), call. = FALSE)
}

connect <- function(schema) {
  c <- dbConnect(
    PostgreSQL(),
    host = Sys.getenv("PGHOST"), port = as.integer(Sys.getenv("PGPORT")),
    dbname = Sys.getenv("PGDATABASE"), user = Sys.getenv("PGUSER"),
    password = Sys.getenv("PGPASSWORD")
  )
  dbExecute(c, "set client_min_messages = warning")
  if (nzchar(schema)) dbExecute(c, paste("set search_path =", schema))
  c
}

with_people <- function(body) {
  function(schema) {
    c <- connect(schema)
    on.exit(dbDisconnect(c))
    dbExecute(c, "create table people (id serial primary key, name text not null unique, age int)")
    dbExecute(c, "insert into people (name, age) values ('ann', 41), ('bob', null)")
    body(c, schema)
  }
}

cases <- list(
  connects = with_people(function(c, schema) {
    equal(dbGetQuery(c, "select current_schema()::text as s")$s, schema)
    equal(grepl("^18", dbGetInfo(c)$serverVersion), TRUE)
    equal(isPostgresqlIdCurrent(c), TRUE)
  }),
  frames_are_read = with_people(function(c, schema) {
    found <- dbGetQuery(c, "select id, name, age from people order by id")
    equal(names(found), c("id", "name", "age"))
    equal(found$age, c(41L, NA))
    equal(sapply(found, class), c("integer", "character", "integer"))
  }),
  tables_are_read = with_people(function(c, schema) {
    found <- dbReadTable(c, "people")
    equal(nrow(found), 2L)
    equal(dbExistsTable(c, "people"), TRUE)
    equal(dbExistsTable(c, "nowhere"), FALSE)
    equal(dbListFields(c, "people"), c("id", "name", "age"))
    equal("people" %in% dbListTables(c), TRUE)
  }),
  frames_are_written = with_people(function(c, schema) {
    frame <- data.frame(
      n = 1:3, x = c(1.5, NA, 2.5), s = c("a", "it's\t\"q\"", NA), b = c(TRUE, FALSE, NA),
      stringsAsFactors = FALSE
    )
    equal(dbWriteTable(c, "made", frame, row.names = FALSE), TRUE)
    found <- dbReadTable(c, "made")
    equal(found$n, frame$n)
    equal(found$x, frame$x)
    equal(found$s, frame$s)
    equal(found$b, frame$b)
  }),
  frames_are_appended = with_people(function(c, schema) {
    dbWriteTable(c, "made", data.frame(n = 1:2), row.names = FALSE)
    dbWriteTable(c, "made", data.frame(n = 3:4), append = TRUE, row.names = FALSE)
    equal(dbGetQuery(c, "select sum(n)::int as n from made")$n, 10L)
    dbWriteTable(c, "made", data.frame(n = 9L), overwrite = TRUE, row.names = FALSE)
    equal(dbReadTable(c, "made")$n, 9L)
    equal(dbRemoveTable(c, "made"), TRUE)
  }),
  schemas_are_named = with_people(function(c, schema) {
    dbWriteTable(c, c(schema, "made"), data.frame(n = 1:2), row.names = FALSE)
    equal(dbExistsTable(c, c(schema, "made")), TRUE)
    equal(nrow(dbReadTable(c, c(schema, "made"))), 2L)
  }),
  dates_and_times = with_people(function(c, schema) {
    found <- dbGetQuery(c, "select date '2024-02-29' as d, timestamp '2024-02-29 01:02:03.5' as t,
      timestamptz '2024-02-29 01:02:03+00' as z")
    equal(found$d, as.Date("2024-02-29"))
    equal(class(found$t)[1], "POSIXct")
    equal(as.numeric(found$z), as.numeric(as.POSIXct("2024-02-29 01:02:03", tz = "UTC")))
  }),
  numbers_and_texts = with_people(function(c, schema) {
    found <- dbGetQuery(c, "select 1.50::numeric(5, 2) as n, 2.5::float8 as f, 2::int2 as s,
      5000000000::int8 as b, 'ä'::varchar(3) as v, true as t, null::int as z")
    equal(c(found$n, found$f, found$s, found$b), c(1.5, 2.5, 2, 5e9))
    equal(list(enc2utf8(found$v), found$t, found$z), list("\u00e4", TRUE, NA_integer_))
  }),
  parameters = with_people(function(c, schema) {
    found <- dbGetQuery(c, "select name from people where name = $1 or age > $2", c("bob", "40"))
    equal(sort(found$name), c("ann", "bob"))
    text <- postgresqlEscapeStrings(c, "it's")
    equal(dbGetQuery(c, paste0("select '", text, "' as t"))$t, "it's")
  }),
  results_are_fetched_in_parts = with_people(function(c, schema) {
    result <- dbSendQuery(c, "select g from generate_series(1, 2500) g")
    sizes <- c()
    while (!dbHasCompleted(result)) sizes <- c(sizes, nrow(dbFetch(result, n = 1000)))
    equal(sizes[1:3], c(1000L, 1000L, 500L))
    equal(dbGetRowCount(result), 2500L)
    dbClearResult(result)
  }),
  columns_are_described = with_people(function(c, schema) {
    result <- dbSendQuery(c, "select id, name from people")
    found <- dbColumnInfo(result)
    equal(found$name, c("id", "name"))
    equal(as.character(found$type), c("INTEGER", "TEXT"))
    equal(dbGetStatement(result), "select id, name from people")
    dbClearResult(result)
  }),
  changes_are_counted = with_people(function(c, schema) {
    equal(dbExecute(c, "update people set age = 1"), 2)
    result <- dbSendQuery(c, "delete from people where id = 1")
    equal(dbGetRowsAffected(result), 1L)
    dbClearResult(result)
  }),
  transactions = with_people(function(c, schema) {
    dbBegin(c)
    dbExecute(c, "delete from people")
    dbRollback(c)
    dbBegin(c)
    dbExecute(c, "insert into people (name) values ('zoe')")
    dbCommit(c)
    equal(dbGetQuery(c, "select count(*)::int as n from people")$n, 3L)
  }),
  errors_have_texts = with_people(function(c, schema) {
    fails(c, "select nothing", "column \"nothing\" does not exist")
    fails(c, "selec 1", "syntax error at or near \"selec\"")
    fails(
      c, "insert into people (name) values ('ann')",
      "duplicate key value violates unique constraint \"people_name_key\""
    )
    equal(dbGetQuery(c, "select 1 as n")$n, 1L)
  }),
  connections_are_listed = with_people(function(c, schema) {
    equal(length(dbListConnections(PostgreSQL())) >= 1, TRUE)
    equal(length(dbListResults(c)), 0L)
    equal(is.null(dbGetException(c)$errorMsg), FALSE)
  })
)

fresh <- function(schema, again) {
  c <- connect("")
  on.exit(dbDisconnect(c))
  dbExecute(c, paste("drop schema if exists", schema, "cascade"))
  if (again) dbExecute(c, paste("create schema", schema))
}

quoted <- function(text) {
  text <- gsub("[[:space:]]+", " ", text)
  paste0("\"", gsub("([\"\\\\])", "\\\\\\1", text), "\"")
}

version <- as.character(packageVersion("RPostgreSQL"))
for (name in names(cases)) {
  if (!grepl(Sys.getenv("ONLY"), paste0("rpostgresql.", name), perl = TRUE)) next
  schema <- paste0("rr_", name)
  reason <- tryCatch(
    {
      setTimeLimit(elapsed = 30)
      fresh(schema, TRUE)
      suppressWarnings(cases[[name]](schema))
      fresh(schema, FALSE)
      ""
    },
    error = function(error) paste("failed:", conditionMessage(error)),
    finally = setTimeLimit()
  )
  cat(sprintf(
    "{\"client\": \"rpostgresql\", \"version\": \"%s\", \"case\": \"%s\", \"ok\": %s, \"reason\": %s}\n",
    version, name, if (nzchar(reason)) "false" else "true", quoted(reason)
  ))
}
