<?php
// The clients of PHP. Warnings are errors, as frameworks make them.
declare(strict_types=1);

set_error_handler(function (int $level, string $text, string $file, int $line): bool {
    throw new ErrorException($text, 0, $level, $file, $line);
});
ini_set('display_errors', 'stderr');
require __DIR__ . '/harness.php';
require __DIR__ . '/pgsql_cases.php';
require __DIR__ . '/pdo_cases.php';
run_all('php-pgsql', phpversion('pgsql'), pgsql_cases());
run_all('pdo-pgsql', phpversion('pdo_pgsql'), pdo_cases());
