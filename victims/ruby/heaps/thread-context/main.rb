# A thread of a pool keeps the contexts of all its jobs.
class Context
  def initialize(number)
    @user = "user #{number} of the shop with a long name"
    @roles = [:reader, number]
  end
end

$jobs, $done = Queue.new, Queue.new
Thread.new do
  Thread.current[:contexts] = []
  while (first = $jobs.pop)
    10_000.times { |number| Thread.current[:contexts] << Context.new(first + number) }
    $done << true
  end
end

$number = 0

def step
  $jobs << $number
  $number += 10_000
  $done.pop
end

(ARGV[0] || 1).to_i.times { step }
puts "READY"
$stdout.flush
while $stdin.gets                # each line: one step more
  step
  puts "DONE"
  $stdout.flush
end
