"""Clients that Debian packages: of Ruby, Perl, PHP and R, an ODBC driver, and a pooler."""
