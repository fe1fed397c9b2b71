<?php
// Runs cases one after the other, and prints a line of JSON for each.
//
// A case that fails stops none after it; each has a schema of its own, made afresh.
declare(strict_types=1);

class Mismatch extends Exception
{
}

function equal(mixed $found, mixed $wanted): void
{
    if ($found !== $wanted) {
        throw new Mismatch('found ' . json_encode($found) . ', wanted ' . json_encode($wanted));
    }
}

function place(string $name): string
{
    return (string) getenv($name);
}

function error_of(callable $body, string $kind): Throwable
{
    try {
        $body();
    } catch (Throwable $error) {
        if (!$error instanceof $kind) {
            throw $error;
        }
        return $error;
    }
    throw new Mismatch("no error, wanted $kind");
}

function conninfo(): string
{
    return sprintf(
        "host=%s port=%s dbname=%s user=%s password='%s'",
        place('PGHOST'), place('PGPORT'), place('PGDATABASE'), place('PGUSER'), place('PGPASSWORD')
    );
}

function fresh(string $schema, bool $again): void
{
    $connection = pg_connect(conninfo(), PGSQL_CONNECT_FORCE_NEW);
    pg_query($connection, 'set client_min_messages = warning');
    pg_query($connection, "drop schema if exists $schema cascade");
    if ($again) {
        pg_query($connection, "create schema $schema");
    }
    pg_close($connection);
}

/** @param array<string, callable(string): void> $cases */
function run_all(string $client, string $version, array $cases): void
{
    $only = '/' . place('ONLY') . '/';
    foreach ($cases as $name => $body) {
        if (!preg_match($only, "$client.$name")) {
            continue;
        }
        $schema = substr(strtr("ph_{$client}_$name", '.-', '__'), 0, 60);
        $reason = '';
        try {
            fresh($schema, true);
            $body($schema);
            fresh($schema, false);
        } catch (Throwable $error) {
            $reason = get_class($error) . ': ' . preg_replace('/\s+/', ' ', $error->getMessage());
        }
        echo json_encode([
            'client' => $client, 'version' => $version, 'case' => $name,
            'ok' => $reason === '', 'reason' => $reason,
        ], JSON_INVALID_UTF8_SUBSTITUTE), "\n";
    }
}
