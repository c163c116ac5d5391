# Listeners that are added and never removed, in a global variable.
class Widget
  def initialize(number)
    @number = number
    @text = "widget #{number} " * 6
    $listeners << method(:changed)
  end

  def changed = @text
end

$listeners = []
$number = 0

def step
  10_000.times { Widget.new($number += 1) }
end

(ARGV[0] || 1).to_i.times { step }
puts "READY"
$stdout.flush
while $stdin.gets                # each line: one step more
  step
  puts "DONE"
  $stdout.flush
end
