# frozen_string_literal: true

# Runs cases one after the other, and prints a line of JSON for each.
#
# A case that fails or hangs stops none after it; each has a schema of its own, made afresh.
require "json"
require "pg"
require "timeout"

LIMIT = 30
ONLY = Regexp.new(ENV.fetch("ONLY", ""))

class Mismatch < StandardError; end

def equal(found, wanted)
  raise Mismatch, "found #{found.inspect}, wanted #{wanted.inspect}" unless found == wanted
end

# The error that the block raises, which must be of this class.
def error_of(kind)
  yield
rescue kind => e
  e
else
  raise Mismatch, "no error, wanted #{kind}"
end

def server
  {
    host: ENV.fetch("PGHOST"), port: ENV.fetch("PGPORT"), user: ENV.fetch("PGUSER"),
    dbname: ENV.fetch("PGDATABASE"), password: ENV.fetch("PGPASSWORD", ""),
  }
end

def fresh(schema, again:)
  connection = PG.connect(**server)
  connection.exec("set client_min_messages = warning")
  connection.exec("drop schema if exists #{schema} cascade")
  connection.exec("create schema #{schema}") if again
ensure
  connection&.close
end

def reason_of(error)
  cause = error.is_a?(PG::Error) ? error : error.cause
  code = cause.is_a?(PG::Error) && cause.result&.error_field(PG::PG_DIAG_SQLSTATE)
  [code, "#{error.class}:", error.message.tr("\n", " ")].select { |part| part }.join(" ")
end

# A library and its cases, which are blocks that get the name of their schema.
class Client
  def initialize(name, version)
    @name = name
    @version = version.to_s
    @cases = {}
  end

  def test(name, &body)
    @cases[name] = body
  end

  def run
    @cases.each do |name, body|
      next unless ONLY.match?("#{@name}.#{name}")

      reason = run_case("rb_#{@name}_#{name}".tr(".-", "__")[0, 60], body)
      line = { client: @name, version: @version, case: name, ok: reason.empty?, reason: reason }
      $stdout.puts(JSON.generate(line))
      $stdout.flush
    end
  end

  private

  def run_case(schema, body)
    fresh(schema, again: true)
    Timeout.timeout(LIMIT) { body.call(schema) }
    fresh(schema, again: false)
    ""
  rescue Exception => e # rubocop:disable Lint/RescueException
    reason_of(e)
  end
end
