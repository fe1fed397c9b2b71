#!/usr/bin/env bash
# Runs the programs one after the other, each with a limit; ONLY is a pattern of `client.case`.
# $1: the Python of the runner, for the pooler's client.
export PATH="/usr/sbin:/usr/bin:/bin"
limit="timeout 600"
$limit ruby ruby/main.rb
$limit perl -I perl perl/main.pl
$limit php php/main.php
$limit Rscript --vanilla r/main.R
$limit python3 -B python/odbc.py
$limit "$1" -B python/bouncer.py
