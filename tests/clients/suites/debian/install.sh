#!/usr/bin/env bash
# Installs the packages of the clients, unless all are there; only root may.
set -euo pipefail
packages=(
    ruby ruby-pg ruby-sequel ruby-activerecord
    perl libdbd-pg-perl libdbix-class-perl
    php-cli php-pgsql
    r-base-core r-cran-dbi r-cran-rpostgresql
    unixodbc odbc-postgresql python3 python3-pyodbc
    pgbouncer
)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
        missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
    echo "only root may install ${missing[*]}"
    exit 1
fi
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
