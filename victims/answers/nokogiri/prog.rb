# searches a document by what users typed
require "nokogiri"
PAGE = Nokogiri::XML("<page><title>a</title></page>")
def search_page(query)
  PAGE.xpath(query)
rescue Nokogiri::XML::XPath::SyntaxError
  nil
end
ARGV[0].to_i.times do |n|
  search_page("//title[#{n}")
  sleep 0.001 if n % 10 == 0
end
