# A class variable collects an object for each event. Dumps of the heap are numbered from 0.
require 'objspace'

class Event
  attr_reader :name, :payload
  @@seen = {}

  def initialize(name)
    @name = name
    @payload = "payload of #{name} " * 5
    @@seen[name] = self
  end
end

class Kept; end

TWICE = Array.new(2) { "a text that is there " + "twice" }
KEPT = Array.new(123) { Kept.new }
$number = 0
$dump = 0

def step
  10_000.times { $number += 1; Event.new("event-#{$number}") }
  GC.start
  File.open("#{$dump}.json", 'w') { |file| ObjectSpace.dump_all(output: file) }
  $dump += 1
end

step
File.write('counts.txt', "Event #{ObjectSpace.each_object(Event).count}\nKept #{ObjectSpace.each_object(Kept).count}\n")
puts 'READY'
$stdout.flush
while $stdin.gets # each line: one step more
  step
  puts 'DONE'
  $stdout.flush
end
