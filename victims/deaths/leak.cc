// Death: a cache that only grows. Each order keeps 20 kB; the group's limit ends it.
#include <cstring>
#include <map>
#include <unistd.h>

class OrderCache {
public:
    __attribute__((noinline)) void remember(unsigned long number)
    {
        char *order = new char[20000];
        memset(order, 1, 20000);
        orders[number] = order;
    }

private:
    std::map<unsigned long, char *> orders;
};

static OrderCache cache;

int main()
{
    while (access("go", F_OK)) usleep(1000);
    for (unsigned long number = 0;; number++) {
        cache.remember(number);
        usleep(500);
    }
}
