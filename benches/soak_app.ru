# What soak_client.py asks, for Rack (puma).
run lambda { |env|
  number = env["PATH_INFO"][1..].to_i
  body = (0...50).map { |k| ("x" * (1000 + (number + k) % 3000)).bytesize }.sum.to_s
  [200, { "content-length" => body.size.to_s }, [body]]
}
