# frozen_string_literal: true

require_relative "harness"
require_relative "pg_cases"
require_relative "sequel_cases"
require_relative "active_record_cases"

[PG_CLIENT, SEQUEL_CLIENT, ACTIVE_RECORD_CLIENT].each(&:run)
