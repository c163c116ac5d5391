// Death: a cache that only grows. Each order keeps 20 kB; the group's limit ends it. The file `count` has the number
// of orders as a binary number of 64 bits.
#include <cstring>
#include <fcntl.h>
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
    int file = open("count", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (unsigned long number = 0;; number++) {
        cache.remember(number);
        if (pwrite(file, &number, sizeof number, 0) < 0) return 2;
        usleep(500);
    }
}
