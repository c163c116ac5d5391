# writes answers; some records refuse to be written
require 'json'
class Record
  def to_json(*) = raise("private")
end
def write_answer(id)
  JSON.generate({ "id" => id, "text" => "some text " * 100, "record" => Record.new })
rescue RuntimeError
  nil
end
ARGV[0].to_i.times do |id|
  write_answer(id)
  sleep 0.001 if id % 10 == 0
end
