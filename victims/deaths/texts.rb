# Death: an array of texts that only grows.
$orders = []

def remember(number)
  $orders << ("x" * 20_000) + number.to_s
end

sleep 0.005 until File.exist?("go")
number = 0
loop do
  20.times { remember(number += 1) }
  sleep 0.005
end
