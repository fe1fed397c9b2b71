# Runs cases one after the other, and prints a line of JSON for each.
#
# A case that fails or hangs stops none after it; each has a schema of its own, made afresh.
package Harness;
use strict;
use warnings;
use DBI;
use Exporter 'import';
use JSON::PP;

our @EXPORT_OK = qw(source equal error_of connect_to run_all);

my $json = JSON::PP->new->ascii->canonical->allow_nonref;
my $only = $ENV{ONLY} // '';

# The data source name of the server.
sub source { "dbi:Pg:host=$ENV{PGHOST};port=$ENV{PGPORT};dbname=$ENV{PGDATABASE}" }

sub connect_to {
    my ($schema, %more) = @_;
    my %options = (RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1,
        pg_enable_utf8 => -1, %more);
    my $db = DBI->connect(source(), $ENV{PGUSER}, $ENV{PGPASSWORD}, \%options);
    $db->do("set client_min_messages = warning");
    $db->do("set search_path = $schema") if $schema;
    return $db;
}

# Ends the case unless both are the same, as JSON.
sub equal {
    my ($found, $wanted) = map { $json->encode($_) } @_;
    die "found $found, wanted $wanted\n" unless $found eq $wanted;
}

# The SQLSTATE of what must fail.
sub error_of {
    my ($body) = @_;
    return $DBI::state || "$@" unless eval { $body->(); 1 };
    die "no error\n";
}

sub fresh {
    my ($schema, $again) = @_;
    my $db = connect_to();
    $db->do("drop schema if exists $schema cascade");
    $db->do("create schema $schema") if $again;
    $db->disconnect;
}

# Runs pairs of a name and a body, which gets the name of its schema.
sub run_all {
    my ($client, $version, @cases) = @_;
    local $| = 1;
    while (my ($name, $body) = splice @cases, 0, 2) {
        next unless "$client.$name" =~ /$only/;
        (my $schema = substr "pl_${client}_$name", 0, 60) =~ tr/.-/__/;
        my $ok = eval {
            fresh($schema, 1);
            local $SIG{ALRM} = sub { die "time-out of 30 s\n" };
            alarm 30;
            $body->($schema);
            alarm 0;
            fresh($schema, 0);
            1;
        };
        my $reason = $ok ? '' : join ' ', grep { $_ } ($DBI::state // ''), "$@";
        alarm 0;
        $reason =~ s/\s+/ /g;
        print $json->encode({ client => $client, version => "$version", case => $name,
            ok => $ok ? JSON::PP::true : JSON::PP::false, reason => $reason }), "\n";
    }
}

1;
