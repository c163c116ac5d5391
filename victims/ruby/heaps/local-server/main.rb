# A server that a local variable holds remembers all requests. Its handler is a block.
class Request
  def initialize(number)
    @path = "/items/#{number}?page=#{number % 7}&sort=name"
  end
end

class Server
  def initialize
    @history = []
    @handler = ->(request) { @history << request }
  end

  def handle(request) = @handler.call(request)
end

server = Server.new
number = 0
step = -> { 10_000.times { server.handle(Request.new(number += 1)) } }

(ARGV[0] || 1).to_i.times { step.call }
puts "READY"
$stdout.flush
while $stdin.gets                # each line: one step more
  step.call
  puts "DONE"
  $stdout.flush
end
