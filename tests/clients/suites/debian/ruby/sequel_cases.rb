# frozen_string_literal: true

# Sequel, a toolkit of queries and models.
require "sequel"
require "tmpdir"

SEQUEL_CLIENT = Client.new("sequel", Sequel::VERSION)

def sequel(schema)
  Sequel.postgres(server[:dbname], host: server[:host], port: server[:port], user: server[:user],
                                   password: server[:password], search_path: [schema],
                                   max_connections: 3)
end

def make_artists(db)
  db.create_table(:artists) do
    primary_key :id
    String :name, null: false, unique: true
    BigDecimal :fee, size: [10, 2]
    DateTime :born
    TrueClass :living, default: true
    index :born
  end
  db.create_table(:albums) do
    primary_key :id
    foreign_key :artist_id, :artists, on_delete: :cascade
    String :title, size: 50, null: false
    check { char_length(title) > 1 }
  end
  db[:artists].import(%i[name fee], [["ann", BigDecimal("1.50")], ["bob", nil]])
  db[:albums].multi_insert([{ artist_id: 1, title: "one" }, { artist_id: 1, title: "two" }])
end

def sequel_test(name, tables: true)
  SEQUEL_CLIENT.test(name) do |schema|
    db = sequel(schema)
    begin
      make_artists(db) if tables
      yield db, schema
    ensure
      db.disconnect
    end
  end
end

sequel_test("datasets_are_read") do |db|
  equal(db[:artists].where { fee > 1 }.get(:name), "ann")
  equal(db[:artists].order(Sequel.desc(:id)).limit(1, 1).select_map(:id), [1])
  equal(db[:artists].where(name: %w[ann zoe]).or(fee: nil).count, 2)
  equal(db[:artists].exclude(Sequel.ilike(:name, "A%")).first[:name], "bob")
  equal(db[:albums].group_and_count(:artist_id).all, [{ artist_id: 1, count: 2 }])
end

sequel_test("datasets_are_changed") do |db|
  equal(db[:artists].insert(name: "zoe"), 3)
  equal(db[:artists].where(id: 3).update(fee: Sequel[2] * 3), 1)
  equal(db[:artists].where(id: 3).returning(:name, :fee).delete, [{ name: "zoe", fee: BigDecimal("6") }])
  equal(db[:artists].insert_conflict(target: :name, update: { fee: Sequel[:excluded][:fee] })
                    .insert(name: "ann", fee: 9), 1)
  equal(db[:artists].insert_conflict.insert(name: "ann"), nil)
end

sequel_test("values_of_types", tables: false) do |db|
  db.create_table(:t) do
    Date :d
    Time :t, only_time: true
    File :b
    Float :f
    Bignum :n
    column :u, :uuid
    column :z, "timestamp with time zone"
  end
  row = { d: Date.new(2024, 2, 29), b: Sequel.blob("\x00\xFF".b), f: 1.5, n: 2**40,
          u: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", z: Time.utc(2024, 1, 2, 3, 4, 5) }
  db[:t].insert(row.merge(t: Sequel::SQLTime.create(1, 2, 3)))
  found = db[:t].first
  equal(found.slice(:d, :b, :f, :n, :u), row.slice(:d, :b, :f, :n, :u))
  equal(found[:z].to_i, row[:z].to_i)
  equal([found[:t].hour, found[:t].sec], [1, 3])
end

sequel_test("arrays_and_json", tables: false) do |db|
  db.extension(:pg_array, :pg_json)
  Sequel.extension(:pg_array_ops, :pg_json_ops)
  db.create_table(:t) do
    column :tags, "text[]"
    column :meta, :jsonb
  end
  db[:t].insert(tags: Sequel.pg_array(["a", nil], :text), meta: Sequel.pg_jsonb({ "k" => [1] }))
  found = db[:t].first
  equal([found[:tags].to_a, found[:meta].to_hash], [["a", nil], { "k" => [1] }])
  equal(db[:t].where(Sequel.pg_array_op(:tags).contains(Sequel.pg_array(["a"], :text))).count, 1)
  equal(db[:t].get(Sequel.pg_jsonb_op(:meta).get_text("k")), "[1]")
end

sequel_test("enums", tables: false) do |db|
  db.extension(:pg_enum)
  db.create_enum(:mood, %w[sad happy])
  db.create_table(:t) { mood :mood, default: "sad" }
  db[:t].insert
  equal(db[:t].get(:mood), "sad")
  equal(db.schema(:t)[0][1][:enum_values], %w[sad happy])
  db.add_enum_value(:mood, "calm", after: "sad")
  db.drop_table(:t)
  db.drop_enum(:mood)
end

sequel_test("joins") do |db|
  rows = db[:artists].left_join(:albums, artist_id: :id).order(Sequel[:albums][:id])
                     .select_map([Sequel[:artists][:name], :title])
  equal(rows, [%w[ann one], %w[ann two], ["bob", nil]])
  with = db[:recent].with(:recent, db[:albums].where { id > 1 })
  equal(with.select_map(:title), ["two"])
  window = db[:albums].select { [title, row_number.function.over(order: Sequel.desc(:id)).as(:n)] }
  equal(window.order(:n).first, { title: "two", n: 1 })
end

sequel_test("transactions") do |db|
  db.transaction do
    db[:artists].insert(name: "zoe")
    db.transaction(savepoint: true) do
      db[:artists].delete
      raise Sequel::Rollback
    end
  end
  equal(db[:artists].count, 3)
  db.transaction(isolation: :serializable, read_only: true) { db[:artists].count }
  called = []
  db.transaction { db.after_commit { called << 1 } }
  equal(called, [1])
end

sequel_test("errors_of_constraints") do |db|
  error_of(Sequel::UniqueConstraintViolation) { db[:artists].insert(name: "ann") }
  error_of(Sequel::ForeignKeyConstraintViolation) { db[:albums].insert(artist_id: 9, title: "x1") }
  error_of(Sequel::NotNullConstraintViolation) { db[:albums].insert(title: nil) }
  error_of(Sequel::CheckConstraintViolation) { db[:albums].insert(title: "x") }
  error = error_of(Sequel::DatabaseError) { db["select * from nowhere"].all }
  equal(error.wrapped_exception.class, PG::UndefinedTable)
end

sequel_test("models") do |db|
  artist = Class.new(Sequel::Model(db[:artists]))
  album = Class.new(Sequel::Model(db[:albums]))
  artist.one_to_many(:albums, class: album, key: :artist_id, order: :id)
  album.many_to_one(:artist, class: artist, key: :artist_id)
  ann = artist.first(name: "ann")
  equal(ann.albums.map(&:title), %w[one two])
  made = ann.add_album(title: "three")
  equal(made.artist.name, "ann")
  equal(artist.eager(:albums).order(:id).all.map { |one| one.albums.size }, [3, 0])
  made.update(title: "four")
  equal(album[made.id].title, "four")
  ann.destroy
  equal(album.count, 0)
end

sequel_test("models_are_typed_by_the_schema") do |db|
  artist = Class.new(Sequel::Model(db[:artists]))
  one = artist.create(name: "zoe", fee: "2.25", living: "f")
  equal([one.fee, one.living], [BigDecimal("2.25"), false])
  equal(artist.primary_key, :id)
end

sequel_test("schemas_are_read") do |db|
  columns = db.schema(:artists).to_h
  equal(columns[:id].slice(:db_type, :primary_key, :allow_null, :auto_increment),
        { db_type: "integer", primary_key: true, allow_null: false, auto_increment: true })
  equal(columns[:fee].slice(:db_type, :type), { db_type: "numeric(10,2)", type: :decimal })
  equal(columns[:living][:ruby_default], true)
  equal(db.tables.sort, %i[albums artists])
  equal(db.table_exists?(:nowhere), false)
end

sequel_test("indexes_and_keys_are_read") do |db|
  equal(db.indexes(:artists)[:artists_born_index], { unique: false, columns: [:born], deferrable: nil })
  keys = db.foreign_key_list(:albums)
  equal(keys.map { |key| key.slice(:columns, :key, :on_delete) },
        [{ columns: [:artist_id], key: [:id], on_delete: :cascade }])
  equal(db.check_constraints(:albums).keys, [:albums_title_check])
  equal(db.primary_key(:albums), "id")
  equal(db.primary_key_sequence(:albums).include?("albums_id_seq"), true)
end

sequel_test("tables_are_altered") do |db|
  db.alter_table(:artists) do
    add_column :mail, String, default: "x"
    rename_column :fee, :price
    set_column_type :mail, :text
    set_column_default :mail, nil
    set_column_not_null :mail
    add_index :mail, name: :mails
    add_constraint(:positive) { price > 0 }
  end
  equal(db[:artists].columns, %i[id name price born living mail])
  db.alter_table(:artists) do
    drop_constraint :positive
    drop_index :mail, name: :mails
    drop_column :mail
  end
  db.rename_table(:artists, :singers)
  db.create_view(:named, db[:singers].select(:name))
  equal([db.views, db[:named].count], [[:named], 2])
  db.drop_view(:named)
end

sequel_test("prepared_statements") do |db|
  found = db[:artists].where(name: :$name).prepare(:first, :find_artist)
  equal(found.call(name: "bob")[:id], 2)
  add = db[:artists].prepare(:insert, :add_artist, name: :$name)
  equal(add.call(name: "zoe"), 3)
end

sequel_test("cursors_and_paging", tables: false) do |db|
  many = db.from(Sequel.function(:generate_series, 1, 3000).as(:g)).select(:g)
  equal(many.use_cursor(rows_per_fetch: 500).map(:g).sum, 4_501_500)
end

sequel_test("copy") do |db|
  equal(db.copy_table(db[:artists].select(:name), format: :csv), "ann\nbob\n")
  db.copy_into(:artists, columns: %i[name fee], data: ["zoe\t1\n", "yan\t\\N\n"])
  equal(db[:artists].count, 4)
end

sequel_test("listen_and_notify", tables: false) do |db, schema|
  other = sequel(schema)
  found = db.listen("news", timeout: 10, after_listen: ->(_) { other.notify("news", payload: "hi") }) do |name, _, text|
    equal([name, text], %w[news hi])
  end
  equal(found, "news")
  other.disconnect
end

sequel_test("locks") do |db, schema|
  other = sequel(schema)
  db.transaction do
    db[:artists].where(id: 1).for_update.all
    equal(other[:artists].for_update.skip_locked.select_map(:id), [2])
    db.run("lock table albums in share mode")
  end
  other.disconnect
end

MIGRATIONS = {
  "001_a.rb" => "Sequel.migration { change { create_table(:a) { primary_key :id; String :name } } }",
  "002_b.rb" => "Sequel.migration { up { add_column :a, :age, Integer }; down { drop_column :a, :age } }",
}.freeze

sequel_test("migrations", tables: false) do |db|
  Sequel.extension(:migration)
  Dir.mktmpdir do |folder|
    MIGRATIONS.each { |name, text| File.write(File.join(folder, name), text) }
    Sequel::Migrator.run(db, folder)
    equal(db[:a].columns, %i[id name age])
    equal(Sequel::Migrator.is_current?(db, folder), true)
    Sequel::Migrator.run(db, folder, target: 1)
    equal(db[:schema_info].get(:version), 1)
    Sequel::Migrator.run(db, folder, target: 0)
    equal(db.table_exists?(:a), false)
  end
end

sequel_test("functions_needs_functions", tables: false) do |db|
  db.create_function(:one, "begin return 1; end", language: :plpgsql, returns: :integer)
  equal(db.get(Sequel.function(:one)), 1)
end
