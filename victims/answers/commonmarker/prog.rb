# renders a page of a book for each request
require "commonmarker"
def render_page(n) = CommonMarker.render_html("page *#{n}* of the book, with some text\n\n" * 8).size
sum = 0
ARGV[0].to_i.times { |k| sum += render_page(k) }
puts sum
