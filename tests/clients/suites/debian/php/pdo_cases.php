<?php
// PDO with its driver pdo_pgsql.
declare(strict_types=1);

class Person
{
    public int $id;
    public string $name;
    public ?int $age;
}

function pdo(string $schema, array $options = []): PDO
{
    $source = sprintf('pgsql:host=%s;port=%s;dbname=%s', place('PGHOST'), place('PGPORT'), place('PGDATABASE'));
    $db = new PDO($source, place('PGUSER'), place('PGPASSWORD'), $options + [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
    ]);
    $db->exec("set search_path = $schema");
    return $db;
}

/** A case with a connection and the table of people. */
function on_pdo(callable $body): callable
{
    return function (string $schema) use ($body): void {
        $db = pdo($schema);
        $db->exec(PEOPLE);
        $body($db, $schema);
    };
}

/** The SQLSTATE of what must fail. */
function pdo_state(callable $body): string
{
    return error_of($body, PDOException::class)->errorInfo[0];
}

/** @return array<string, callable(string): void> */
function pdo_cases(): array
{
    return array_merge(pdo_queries(), pdo_sessions());
}

function pdo_queries(): array
{
    return [
        'connects' => on_pdo(function ($db) {
            equal($db->getAttribute(PDO::ATTR_DRIVER_NAME), 'pgsql');
            equal(str_starts_with($db->getAttribute(PDO::ATTR_SERVER_VERSION), '18'), true);
            equal(str_contains($db->getAttribute(PDO::ATTR_SERVER_INFO), 'PID'), true);
            equal($db->pgsqlGetPid() > 0, true);
        }),
        'rows_are_fetched' => on_pdo(function ($db) {
            $found = $db->query('select id, name, age from people order by id');
            equal($found->fetch(), ['id' => 1, 'name' => 'ann', 'age' => 41]);
            equal($found->fetch(PDO::FETCH_NUM), [2, 'bob', null]);
            equal($found->fetch(), false);
            equal($db->query('select name, age from people')->fetchAll(PDO::FETCH_KEY_PAIR), ['ann' => 41, 'bob' => null]);
            equal($db->query('select count(*) from people')->fetchColumn(), 2);
        }),
        'objects_are_fetched' => on_pdo(function ($db) {
            $found = $db->query('select * from people order by id')->fetchAll(PDO::FETCH_CLASS, Person::class);
            equal([$found[0]->name, $found[0]->age, $found[1]->age], ['ann', 41, null]);
            $grouped = $db->query('select age is null as unknown, name from people order by 1')->fetchAll(PDO::FETCH_GROUP | PDO::FETCH_COLUMN);
            equal(array_values($grouped), [['ann'], ['bob']]);
        }),
        'named_parameters' => on_pdo(function ($db) {
            $st = $db->prepare('insert into people (name, age) values (:name, :age)');
            $st->execute(['name' => 'zoe', 'age' => 5]);
            $st->bindValue(':name', 'yan');
            $st->bindValue(':age', null, PDO::PARAM_NULL);
            $st->execute();
            equal($st->rowCount(), 1);
            equal($db->query('select count(*) from people')->fetchColumn(), 4);
        }),
        'positional_parameters' => on_pdo(function ($db) {
            $st = $db->prepare('select name from people where id in (?, ?) and name like ? order by 1');
            $st->execute([1, 2, '%b%']);
            equal($st->fetchAll(PDO::FETCH_COLUMN), ['bob']);
            $limited = $db->prepare('select id from people order by id limit ? offset ?');
            $limited->bindValue(1, 1, PDO::PARAM_INT);
            $limited->bindValue(2, 1, PDO::PARAM_INT);
            $limited->execute();
            equal($limited->fetchAll(PDO::FETCH_COLUMN), [2]);
        }),
        'emulated_prepares' => function ($schema) {
            $db = pdo($schema, [PDO::ATTR_EMULATE_PREPARES => true]);
            $st = $db->prepare('select :text as t, :n::int + 1 as n, :gone as g');
            $st->execute(['text' => "it's \\ ä", 'n' => 41, 'gone' => null]);
            equal($st->fetch(), ['t' => "it's \\ ä", 'n' => 42, 'g' => null]);
        },
        'disabled_prepares' => function ($schema) {
            $db = pdo($schema, [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]);
            $st = $db->prepare('select ?::int + 1 as n');
            foreach ([1, 2] as $n) {
                $st->execute([$n]);
                equal($st->fetchColumn(), $n + 1);
            }
        },
        'booleans_and_floats' => on_pdo(function ($db) {
            $st = $db->prepare('select ?::bool as b, 2.5::float8 as f, 1.50::numeric(5, 2) as n');
            $st->bindValue(1, false, PDO::PARAM_BOOL);
            $st->execute();
            equal($st->fetch(), ['b' => false, 'f' => '2.5', 'n' => '1.50']);
        }),
        'binary_values' => on_pdo(function ($db) {
            $db->exec('create table t (b bytea)');
            $st = $db->prepare('insert into t values (?)');
            $bytes = "\x00\xff'\\";
            $st->bindValue(1, $bytes, PDO::PARAM_LOB);
            $st->execute();
            $found = $db->query('select b from t')->fetchColumn();
            equal(stream_get_contents($found), $bytes);
        }),
        'columns_are_bound' => on_pdo(function ($db) {
            $st = $db->query('select id, name from people order by id');
            $st->bindColumn('name', $name);
            $found = [];
            while ($st->fetch(PDO::FETCH_BOUND)) {
                $found[] = $name;
            }
            equal($found, ['ann', 'bob']);
        }),
        'columns_are_described' => on_pdo(function ($db) {
            $st = $db->query('select id, name from people');
            equal($st->columnCount(), 2);
            $found = $st->getColumnMeta(1);
            equal([$found['name'], $found['native_type'], $found['table'], $found['pgsql:oid']], ['name', 'text', 'people', 25]);
        }),
        'json_and_arrays' => on_pdo(function ($db) {
            $st = $db->prepare("select ?::jsonb ->> 'k' as k, ? = any (?::text[]) as among, array[1, 2] as a");
            $st->execute(['{"k": "v"}', 'b', '{a,b}']);
            equal($st->fetch(), ['k' => 'v', 'among' => true, 'a' => '{1,2}']);
            $st = $db->prepare("select '{\"k\": 1}'::jsonb ?? 'k'");
            $st->execute();
            equal($st->fetchColumn(), true);
        }),
    ];
}

function pdo_sessions(): array
{
    return [
        'transactions' => on_pdo(function ($db) {
            $db->beginTransaction();
            $db->exec("insert into people (name) values ('zoe')");
            equal([$db->inTransaction(), $db->commit()], [true, true]);
            $db->beginTransaction();
            $db->exec('delete from people');
            $db->rollBack();
            equal($db->query('select count(*) from people')->fetchColumn(), 3);
            $db->beginTransaction();
            equal(pdo_state(fn () => $db->exec('select 1 / 0')), '22012');
            equal(pdo_state(fn () => $db->query('select 1')), '25P02');
            $db->rollBack();
        }),
        'savepoints' => on_pdo(function ($db) {
            $db->beginTransaction();
            $db->exec('savepoint here');
            $db->exec('delete from people');
            $db->exec('rollback to savepoint here');
            $db->commit();
            equal($db->query('select count(*) from people')->fetchColumn(), 2);
        }),
        'errors' => on_pdo(function ($db) {
            $error = error_of(fn () => $db->exec("insert into people (name) values ('ann')"), PDOException::class);
            equal([$error->getCode(), $error->errorInfo[0]], ['23505', '23505']);
            equal($error->getMessage(), "SQLSTATE[23505]: Unique violation: 7 ERROR:  duplicate key value violates unique constraint \"people_name_key\"\nDETAIL:  Key (name)=(ann) already exists.");
            equal(pdo_state(fn () => $db->exec('selec 1')), '42601');
            equal(pdo_state(fn () => $db->query('select * from nowhere')), '42P01');
            equal(pdo_state(fn () => $db->prepare('select * from people where id = ?')->execute(['x'])), '22P02');
        }),
        'silent_errors' => function ($schema) {
            $db = pdo($schema, [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]);
            equal($db->exec('select * from nowhere'), false);
            equal([$db->errorCode(), $db->errorInfo()[0]], ['42P01', '42P01']);
        },
        'last_ids' => on_pdo(function ($db) {
            $db->exec('create table pets (id serial primary key, name text)');
            $db->exec("insert into pets (name) values ('rex')");
            equal([$db->lastInsertId(), $db->lastInsertId('pets_id_seq')], ['1', '1']);
        }),
        'scrollable_cursors' => on_pdo(function ($db) {
            $db->beginTransaction();
            $st = $db->prepare('select g from generate_series(1, 9) g', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
            $st->execute();
            $last = $st->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_LAST);
            $prior = $st->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR);
            $third = $st->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 3);
            equal([$last, $prior, $third], [[9], [8], [3]]);
            $db->rollBack();
        }),
        'copies_of_arrays' => on_pdo(function ($db) {
            equal($db->pgsqlCopyToArray('people', ','), ["1,ann,41\n", "2,bob,\\N\n"]);
            equal($db->pgsqlCopyFromArray('people', ["zoe\t5", "yan\t\\N"], "\t", '\\\\N', 'name, age'), true);
            equal($db->query('select count(*) from people')->fetchColumn(), 4);
        }),
        'copies_of_files' => on_pdo(function ($db) {
            $file = tempnam(sys_get_temp_dir(), 'pdo');
            equal($db->pgsqlCopyToFile('people', $file, ';'), true);
            $db->exec('truncate people');
            equal($db->pgsqlCopyFromFile('people', $file, ';'), true);
            unlink($file);
            equal($db->query('select count(*) from people')->fetchColumn(), 2);
        }),
        'notifications' => on_pdo(function ($db, $schema) {
            $db->exec('listen news');
            pdo($schema)->exec("notify news, 'hello'");
            $found = $db->pgsqlGetNotify(PDO::FETCH_ASSOC, 10000);
            equal([$found['message'], $found['payload']], ['news', 'hello']);
        }),
        'texts_are_quoted' => on_pdo(function ($db) {
            equal($db->quote("it's \\"), "'it''s \\'");
            equal($db->query('select ' . $db->quote('ä'))->fetchColumn(), 'ä');
        }),
        'several_statements' => on_pdo(function ($db) {
            $db->exec('create table a (n int); insert into a values (1); insert into a values (2)');
            equal($db->query('select count(*) from a')->fetchColumn(), 2);
        }),
        'persistent_connections' => function ($schema) {
            $one = pdo($schema, [PDO::ATTR_PERSISTENT => true]);
            $two = pdo($schema, [PDO::ATTR_PERSISTENT => true]);
            equal($one->pgsqlGetPid(), $two->pgsqlGetPid());
        },
        'large_objects_needs_large_objects' => on_pdo(function ($db) {
            $db->beginTransaction();
            $id = $db->pgsqlLOBCreate();
            fwrite($db->pgsqlLOBOpen($id, 'w'), 'abc');
            $db->commit();
        }),
    ];
}
