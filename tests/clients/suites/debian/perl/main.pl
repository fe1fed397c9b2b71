# The clients of Perl.
use strict;
use warnings;
use DbdPgCases;
use DbixClassCases;

DbdPgCases::run();
DbixClassCases::run();
