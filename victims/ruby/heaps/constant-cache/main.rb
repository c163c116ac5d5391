# A cache that nothing ever leaves, in a constant of a module.
module Rates
  Rate = Struct.new(:pair, :value)
  CACHE = {}

  def self.of(pair) = CACHE[pair] ||= Rate.new(pair, pair.sum / 7.0)
end

$number = 0

def step
  10_000.times { Rates.of("pair #{$number += 1}") }
end

(ARGV[0] || 1).to_i.times { step }
puts "READY"
$stdout.flush
while $stdin.gets                # each line: one step more
  step
  puts "DONE"
  $stdout.flush
end
