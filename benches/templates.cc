// Source with much work for a C++ compiler: templates that instantiate templates, over the standard
// containers.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Tag {
    static constexpr int value = N;
    int data[N % 7 + 1];
    bool operator<(const Tag &other) const { return data[0] < other.data[0]; }
};

template <int N> int containers() {
    std::map<std::string, std::vector<Tag<N>>> by_name;
    std::set<Tag<N>> ordered;
    std::unordered_map<int, std::unique_ptr<Tag<N>>> owned;
    by_name["a"].push_back(Tag<N>{});
    ordered.insert(Tag<N>{});
    owned.emplace(N, std::make_unique<Tag<N>>());
    std::vector<std::function<int(int)>> calls{[](int x) { return x + N; }, [&](int x) { return int(by_name.size()) * x; }};
    std::sort(by_name["a"].begin(), by_name["a"].end());
    int sum = 0;
    for (auto &call : calls)
        sum += call(N);
    std::variant<int, Tag<N>, std::string> either = N;
    return sum + std::visit([](auto &&value) { return int(sizeof value); }, either) + std::get<1>(std::make_tuple(1, N, Tag<N>{}));
}

template <int... N> int all(std::integer_sequence<int, N...>) { return (containers<N>() + ... + 0); }

int main() { return all(std::make_integer_sequence<int, 5>{}) & std::regex_match("abc", std::regex("a.c")); }
