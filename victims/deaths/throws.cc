// Death: std::bad_alloc that nobody catches, at the limit of address space.
#include <cstring>
#include <unistd.h>
#include <vector>

static std::vector<char *> parts;

__attribute__((noinline)) static void load_part()
{
    parts.push_back(new char[1000000]);
    memset(parts.back(), 1, 1000000);
}

int main()
{
    while (access("go", F_OK)) usleep(1000);
    for (;;) {
        load_part();
        usleep(5000);
    }
}
