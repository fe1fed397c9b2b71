# DBIx::Class, the object-relational mapper.
package Cases::Schema::Artist;
use strict;
use warnings;
use base 'DBIx::Class::Core';
__PACKAGE__->table('artist');
__PACKAGE__->add_columns(
    id => { data_type => 'integer', is_auto_increment => 1 },
    name => { data_type => 'varchar', size => 40 },
    fee => { data_type => 'numeric', size => [10, 2], is_nullable => 1 },
    tags => { data_type => 'text[]', is_nullable => 1 },
);
__PACKAGE__->set_primary_key('id');
__PACKAGE__->add_unique_constraint(artist_name => ['name']);
__PACKAGE__->has_many(albums => 'Cases::Schema::Album', 'artist_id');

package Cases::Schema::Album;
use base 'DBIx::Class::Core';
__PACKAGE__->table('album');
__PACKAGE__->add_columns(
    id => { data_type => 'integer', is_auto_increment => 1 },
    artist_id => { data_type => 'integer' },
    title => { data_type => 'text' },
    year => { data_type => 'integer', is_nullable => 1 },
);
__PACKAGE__->set_primary_key('id');
__PACKAGE__->belongs_to(artist => 'Cases::Schema::Artist', 'artist_id');

package Cases::Schema;
use base 'DBIx::Class::Schema';
__PACKAGE__->register_class(Artist => 'Cases::Schema::Artist');
__PACKAGE__->register_class(Album => 'Cases::Schema::Album');

package DbixClassCases;
use DBIx::Class;
use Harness qw(equal error_of run_all source);

sub connected {
    my ($name) = @_;
    return Cases::Schema->connect(source(), $ENV{PGUSER}, $ENV{PGPASSWORD},
        { RaiseError => 1, PrintError => 0, pg_enable_utf8 => -1, quote_names => 1,
            on_connect_do => ["set search_path = $name", 'set client_min_messages = warning'] });
}

# A case with tables, two artists and two albums.
sub on_albums {
    my ($body) = @_;
    return sub {
        my ($name) = @_;
        my $db = connected($name);
        $db->storage->dbh->do(q{
            create table artist (id serial primary key, name varchar(40) not null constraint artist_name unique,
                fee numeric(10, 2), tags text[]);
            create table album (id serial primary key, artist_id int not null references artist on delete cascade,
                title text not null, year int)});
        my $ann = $db->resultset('Artist')->create({ name => 'ann', fee => '1.50', tags => ['a', 'b'] });
        $ann->create_related(albums => { title => $_, year => 2000 + length }) for qw(one three);
        $db->resultset('Artist')->create({ name => 'bob' });
        $body->($db, $name);
        $db->storage->disconnect;
    };
}

my @cases = (
    rows_are_made_and_found => on_albums(sub {
        my ($db) = @_;
        my $ann = $db->resultset('Artist')->find({ name => 'ann' }, { key => 'artist_name' });
        equal([$ann->id + 0, $ann->fee, $ann->tags], [1, '1.50', ['a', 'b']]);
        equal($db->resultset('Artist')->find(99), undef);
        equal($db->resultset('Artist')->find_or_create({ name => 'zoe' })->id + 0, 3);
    }),
    rows_are_searched => on_albums(sub {
        my ($db) = @_;
        my $found = $db->resultset('Album')->search(
            { year => { '>' => 2000 }, title => { -ilike => 'T%' } }, { order_by => { -desc => 'id' } });
        equal([map { $_->title } $found->all], ['three']);
        equal($db->resultset('Album')->search({ year => [2003, 1999] })->count, 1);
        equal([$db->resultset('Artist')->search({ fee => undef })->get_column('name')->all], ['bob']);
    }),
    rows_are_changed => on_albums(sub {
        my ($db) = @_;
        my $ann = $db->resultset('Artist')->find(1);
        $ann->update({ fee => 2, tags => ['c'] });
        $ann->discard_changes;
        equal([$ann->fee, $ann->tags], ['2.00', ['c']]);
        $ann->delete;
        equal($db->resultset('Album')->count, 0);
        equal($db->resultset('Artist')->search({ name => 'bob' })->update({ fee => \'3 * 2' }) + 0, 1);
    }),
    rows_are_updated_or_made => on_albums(sub {
        my ($db) = @_;
        $db->resultset('Artist')->update_or_create({ name => 'ann', fee => 9 }, { key => 'artist_name' });
        equal($db->resultset('Artist')->count, 2);
    }),
    relations_are_followed => on_albums(sub {
        my ($db) = @_;
        my @rows = $db->resultset('Artist')->search({}, { prefetch => 'albums', order_by => ['me.id', 'albums.id'] });
        equal([map { scalar $_->albums->all } @rows], [2, 0]);
        my $album = $db->resultset('Album')->search({ 'artist.name' => 'ann' }, { join => 'artist', rows => 1 })->single;
        equal($album->artist->name, 'ann');
    }),
    rows_are_grouped => on_albums(sub {
        my ($db) = @_;
        my $rows = $db->resultset('Album')->search({}, {
            select => ['artist_id', { count => 'id', -as => 'n' }, { max => 'year' }], as => [qw(artist_id n year)],
            group_by => 'artist_id', having => \'count(id) > 1' });
        equal($rows->first->get_column('n') + 0, 2);
        equal($db->resultset('Album')->get_column('year')->sum + 0, 4008);
    }),
    rows_are_paged => on_albums(sub {
        my ($db) = @_;
        my $page = $db->resultset('Album')->search({}, { order_by => 'id', rows => 1, page => 2 });
        equal([$page->first->title, $page->pager->total_entries], ['three', 2]);
    }),
    subqueries => on_albums(sub {
        my ($db) = @_;
        my $with = $db->resultset('Album')->get_column('artist_id')->as_query;
        equal($db->resultset('Artist')->search({ id => { -in => $with } })->count, 1);
        equal($db->resultset('Artist')->search({ id => { -not_in => $with } })->first->name, 'bob');
    }),
    many_rows_are_populated => on_albums(sub {
        my ($db) = @_;
        $db->resultset('Album')->populate([[qw(artist_id title)], map { [2, "t$_"] } 1 .. 100]);
        equal($db->resultset('Album')->count, 102);
    }),
    transactions => on_albums(sub {
        my ($db) = @_;
        my $failed = eval {
            $db->txn_do(sub { $db->resultset('Album')->delete; die "no\n" });
            1;
        };
        equal([$failed, $db->resultset('Album')->count], [undef, 2]);
        $db->txn_do(sub { $db->resultset('Artist')->create({ name => 'zoe' }) });
        {
            local $SIG{__WARN__} = sub { };
            my $guard = $db->txn_scope_guard;
            $db->resultset('Artist')->delete;
        }
        equal($db->resultset('Artist')->count, 3);
    }),
    savepoints => on_albums(sub {
        my ($db) = @_;
        $db->txn_do(sub {
            $db->svp_begin('here');
            $db->resultset('Album')->delete;
            $db->svp_rollback('here');
        });
        equal($db->resultset('Album')->count, 2);
    }),
    errors => on_albums(sub {
        my ($db) = @_;
        equal(scalar eval { $db->resultset('Artist')->create({ name => 'ann' }); 1 }, undef);
        equal($@ =~ /duplicate key value violates unique constraint "artist_name"/, 1);
        equal(scalar eval { $db->resultset('Album')->create({ artist_id => 99, title => 'x' }); 1 }, undef);
        equal($@ =~ /violates foreign key constraint/, 1);
    }),
    locks => on_albums(sub {
        my ($db) = @_;
        $db->txn_do(sub {
            my $row = $db->resultset('Artist')->search({ id => 1 }, { for => 'update' })->single;
            $row->update({ fee => 4 });
        });
        equal($db->resultset('Artist')->find(1)->fee, '4.00');
    }),
    cursors => on_albums(sub {
        my ($db) = @_;
        my $rows = $db->resultset('Album')->search({}, { order_by => 'id' });
        my @found;
        while (my $row = $rows->next) { push @found, $row->title }
        equal(\@found, ['one', 'three']);
    }),
    columns_are_read => on_albums(sub {
        my ($db, $name) = @_;
        my $columns = $db->storage->columns_info_for('artist');
        equal([map { $columns->{$_}{data_type} } qw(id name fee)], ['integer', 'character varying', 'numeric']);
        equal([$columns->{name}{size}, $columns->{name}{is_nullable}], [40, 0]);
    }),
    plain_statements => on_albums(sub {
        my ($db) = @_;
        my $found = $db->storage->dbh_do(sub { $_[1]->selectall_arrayref('select title from album order by id') });
        equal($found, [['one'], ['three']]);
    }),
);

sub run { run_all('dbix-class', $DBIx::Class::VERSION, @cases) }

1;
