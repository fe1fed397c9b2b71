# frozen_string_literal: true

# ActiveRecord, the object-relational mapper of Rails.
require "active_record"

ACTIVE_RECORD_CLIENT = Client.new("activerecord", ActiveRecord.version)
ActiveRecord::Migration.verbose = false

class Author < ActiveRecord::Base
  has_many :books, -> { order(:id) }, dependent: :destroy
  validates :name, presence: true
  enum status: { draft: 0, shown: 1 }
end

class Book < ActiveRecord::Base
  belongs_to :author, counter_cache: true
  has_and_belongs_to_many :tags
  scope :long, -> { where("pages > ?", 150) }
end

class Tag < ActiveRecord::Base
  has_and_belongs_to_many :books
end

def make_library
  ActiveRecord::Schema.define do
    create_table :authors do |t|
      t.string :name, null: false, limit: 40
      t.integer :status, default: 0
      t.decimal :fee, precision: 10, scale: 2
      t.jsonb :meta, default: {}
      t.string :nicks, array: true, default: []
      t.integer :books_count, default: 0
      t.integer :lock_version, default: 0
      t.date :born
      t.timestamps
      t.index :name, unique: true
    end
    create_table :books do |t|
      t.references :author, foreign_key: true
      t.string :title
      t.integer :pages
      t.binary :cover
      t.index %i[author_id title]
    end
    create_table(:tags) { |t| t.string :word }
    create_join_table :books, :tags
  end
  [Author, Book, Tag].each(&:reset_column_information)
  ann = Author.create!(name: "ann", fee: "1.50", meta: { "k" => [1] }, nicks: ["a", "b,c"])
  ann.books.create!([{ title: "one", pages: 100 }, { title: "two", pages: 200 }])
  Author.create!(name: "bob")
end

def record_test(name, tables: true)
  ACTIVE_RECORD_CLIENT.test(name) do |schema|
    place = server
    ActiveRecord::Base.establish_connection(
      adapter: "postgresql", host: place[:host], port: place[:port], username: place[:user],
      database: place[:dbname], password: place[:password], schema_search_path: schema, pool: 5
    )
    begin
      make_library if tables
      yield ActiveRecord::Base.connection, schema
    ensure
      ActiveRecord::Base.connection_handler.clear_all_connections!
    end
  end
end

record_test("records_are_made_and_found") do
  ann = Author.find_by(name: "ann")
  equal([ann.id, ann.fee, ann.meta, ann.nicks], [1, BigDecimal("1.5"), { "k" => [1] }, ["a", "b,c"]])
  equal(ann.created_at.is_a?(Time), true)
  equal(Author.where(name: %w[ann zoe]).pluck(:id), [1])
  error_of(ActiveRecord::RecordNotFound) { Author.find(99) }
  equal(Author.find_or_create_by!(name: "zoe").previously_new_record?, true)
end

record_test("records_are_changed") do
  ann = Author.first
  ann.update!(fee: 2, status: :shown, meta: { "x" => nil })
  equal(Author.shown.map { |one| [one.fee, one.meta] }, [[2, { "x" => nil }]])
  equal(Author.where(fee: nil).update_all("fee = 7"), 1)
  ann.increment!(:fee)
  equal(ann.reload.fee, 3)
  ann.destroy!
  equal([Book.count, Author.count], [0, 1])
end

record_test("queries") do
  equal(Book.long.order(pages: :desc).limit(1).pluck(:title), ["two"])
  equal(Book.where(pages: 50..150).or(Book.where(title: nil)).count, 1)
  equal(Book.where.not(title: "one").exists?, true)
  equal(Book.group(:author_id).having("count(*) > 1").sum(:pages), { 1 => 300 })
  equal([Book.average(:pages), Book.maximum(:pages)], [BigDecimal("150"), 200])
  equal(Author.where("meta ->> 'k' = ?", "[1]").pick(:name), "ann")
  equal(Author.where("? = any (nicks)", "a").ids, [1])
  equal(Book.distinct.select(:author_id).map(&:author_id), [1])
end

record_test("joins_and_preloads") do
  equal(Author.joins(:books).merge(Book.long).pluck("authors.name", "books.title"), [%w[ann two]])
  equal(Author.left_joins(:books).group(:id).order(:id).count("books.id"), { 1 => 2, 2 => 0 })
  equal(Author.includes(:books).order(:id).map { |one| one.books.to_a.size }, [2, 0])
  equal(Author.eager_load(:books).where(books: { pages: 200 }).first.books.map(&:title), ["two"])
  equal(Author.where.missing(:books).pluck(:name), ["bob"])
end

record_test("many_to_many") do
  book = Book.first
  book.tags << Tag.new(word: "red") << Tag.new(word: "blue")
  equal(Tag.find_by(word: "red").books.pluck(:title), ["one"])
  book.tags.clear
  equal(book.reload.tags.size, 0)
end

record_test("counters_and_touches") do
  equal(Author.first.books_count, 2)
  Book.first.destroy
  equal(Author.first.books_count, 1)
  Author.first.touch(time: Time.utc(2030))
  equal(Author.first.updated_at.year, 2030)
end

record_test("bulk_changes") do
  rows = (1..200).map { |n| { author_id: 2, title: "t#{n}", pages: n } }
  equal(Book.insert_all(rows).length, 200)
  Tag.upsert_all([{ id: 1, word: "a" }, { id: 2, word: "b" }])
  Tag.upsert_all([{ id: 2, word: "c" }])
  equal(Tag.order(:id).pluck(:word), %w[a c])
  equal(Book.where(author_id: 2).find_each(batch_size: 60).sum(&:pages), 20_100)
  equal(Book.in_batches(of: 50).delete_all, 202)
end

record_test("transactions") do
  Author.transaction do
    Author.create!(name: "zoe")
    Author.transaction(requires_new: true) do
      Author.delete_all
      raise ActiveRecord::Rollback
    end
  rescue ActiveRecord::InvalidForeignKey
    raise ActiveRecord::Rollback
  end
  Author.transaction(isolation: :serializable) { Author.create!(name: "yan") }
  equal(Author.exists?(name: "yan"), true)
end

record_test("errors_of_constraints") do
  error_of(ActiveRecord::RecordNotUnique) { Author.create!(name: "ann") }
  error_of(ActiveRecord::NotNullViolation) { Author.insert_all!([{ name: nil }]) }
  error_of(ActiveRecord::InvalidForeignKey) { Book.insert_all!([{ author_id: 99 }]) }
  error_of(ActiveRecord::ValueTooLong) { Author.create!(name: "x" * 41) }
  error_of(ActiveRecord::RangeError) { Book.update_all("pages = 2147483647 + pages") }
  error_of(ActiveRecord::StatementInvalid) { Book.where("nothing = 1").to_a }
end

record_test("optimistic_locks") do
  one, two = Author.first, Author.first
  one.update!(fee: 1)
  error_of(ActiveRecord::StaleObjectError) { two.update!(fee: 2) }
end

record_test("pessimistic_locks") do
  Author.transaction do
    author = Author.lock.find(1)
    author.with_lock { author.update!(fee: 5) }
  end
  equal(Author.lock("for update skip locked").count { true }, 2)
  equal(Author.first.fee, 5)
end

record_test("types", tables: false) do |connection|
  connection.create_table(:kinds) do |t|
    t.uuid :u, default: -> { "gen_random_uuid()" }
    t.bigint :n
    t.float :f
    t.boolean :b
    t.time :t
    t.datetime :at, precision: 6
    t.column :z, "timestamptz"
    t.binary :data
    t.json :j
    t.interval :gap
    t.date :days, array: true
  end
  kind = Class.new(ActiveRecord::Base) { self.table_name = "kinds" }
  at = Time.utc(2024, 2, 29, 1, 2, 3, 4)
  made = kind.create!(n: 2**40, f: 1.5, b: true, t: "01:02:03", at: at, z: at, data: "\x00\xFF".b,
                      j: [1, { "a" => nil }], gap: 90.minutes, days: [Date.new(2024, 1, 2)])
  found = kind.find(made.id)
  equal([found.n, found.f, found.b, found.at.usec, found.j], [2**40, 1.5, true, 4, [1, { "a" => nil }]])
  equal([found.data, found.gap, found.days], ["\x00\xFF".b, 90.minutes, [Date.new(2024, 1, 2)]])
  equal(found.u.length, 36)
  equal(found.z.to_i, at.to_i)
end

record_test("schemas_are_read") do |connection|
  columns = connection.columns(:authors).to_h { |c| [c.name, [c.sql_type, c.null, c.default]] }
  equal(columns["name"], ["character varying(40)", false, nil])
  equal(columns["fee"], ["numeric(10,2)", true, nil])
  equal(columns["nicks"], ["character varying", true, "{}"])
  equal(connection.tables.sort, %w[ar_internal_metadata authors books books_tags tags])
  equal(connection.primary_key(:books), "id")
  equal(connection.pk_and_sequence_for(:books).last.to_s.end_with?("books_id_seq"), true)
end

record_test("indexes_and_keys_are_read") do |connection|
  index = connection.indexes(:authors).first
  equal([index.name, index.unique, index.columns], ["index_authors_on_name", true, ["name"]])
  key = connection.foreign_keys(:books).first
  equal([key.to_table, key.column, key.primary_key], %w[authors author_id id])
  equal(connection.index_exists?(:books, %i[author_id title]), true)
  equal(connection.foreign_key_exists?(:books, :authors), true)
end

record_test("tables_are_altered") do |connection|
  connection.add_column(:authors, :mail, :string, default: "x", null: false)
  connection.rename_column(:authors, :mail, :email)
  connection.change_column(:authors, :email, :text)
  connection.change_column_default(:authors, :email, from: "x", to: nil)
  connection.change_column_null(:authors, :email, true)
  connection.add_index(:authors, "lower(email)", name: "mails", where: "email is not null")
  connection.add_check_constraint(:books, "pages > 0", name: "some_pages")
  equal(connection.check_constraints(:books).map(&:name), ["some_pages"])
  connection.change_table_comment(:books, "Books")
  equal(connection.table_comment("books"), "Books")
  connection.remove_index(:authors, name: "mails")
  connection.remove_column(:authors, :email)
  connection.rename_table(:tags, :words)
  equal(connection.column_exists?(:words, :word, :string), true)
end

record_test("schemas_are_dumped") do |connection|
  text = StringIO.new
  ActiveRecord::SchemaDumper.dump(connection, text)
  dumped = text.string
  ["create_table \"authors\", force: :cascade", "t.decimal \"fee\", precision: 10, scale: 2",
   "t.string \"nicks\", default: [], array: true", "add_foreign_key \"books\", \"authors\"",
   "t.jsonb \"meta\", default: {}",
   "t.index [\"name\"], name: \"index_authors_on_name\", unique: true"].each do |line|
    raise Mismatch, "no #{line} in the dump" unless dumped.include?(line)
  end
end

class AddColors < ActiveRecord::Migration[6.1]
  def change
    create_table(:colors) { |t| t.string :name, index: { unique: true } }
    add_reference :colors, :color, foreign_key: true
    reversible { |way| way.up { execute("insert into colors (name) values ('red')") } }
  end
end

class Broken < ActiveRecord::Migration[6.1]
  def up
    create_table(:late)
    execute("insert into nowhere values (1)")
  end
end

record_test("migrations", tables: false) do |connection|
  AddColors.migrate(:up)
  equal(connection.select_value("select name from colors"), "red")
  AddColors.migrate(:down)
  equal(connection.table_exists?(:colors), false)
  error_of(ActiveRecord::StatementInvalid) { connection.transaction { Broken.new.exec_migration(connection, :up) } }
  equal(connection.table_exists?(:late), false)
end

record_test("migrations_hold_a_lock", tables: false) do |connection|
  equal(connection.get_advisory_lock(7), true)
  equal(connection.release_advisory_lock(7), true)
  equal(connection.supports_ddl_transactions?, true)
end

record_test("statements_are_prepared") do |connection|
  3.times { |n| Author.find_by(id: n) }
  found = connection.select_value("select count(*) from pg_prepared_statements")
  equal(found.positive?, true)
  rows = connection.exec_query("select $1::int + 1 as n", "x", [ActiveRecord::Relation::QueryAttribute.new("n", 41, ActiveRecord::Type::Integer.new)])
  equal(rows.to_a, [{ "n" => 42 }])
  connection.clear_cache!
end

record_test("plans_are_explained") do
  equal(Author.where(name: "ann").explain.include?("QUERY PLAN"), true)
end

record_test("foreign_keys_can_wait_needs_triggers") do |connection|
  connection.disable_referential_integrity { Book.insert_all!([{ author_id: 99 }]) }
end

record_test("pools") do
  found = 8.times.map do
    Thread.new { ActiveRecord::Base.connection_pool.with_connection { Author.count } }
  end
  equal(found.map(&:value), [2] * 8)
  equal(ActiveRecord::Base.connection.active?, true)
end
