// Death: messages that nobody reads, in the kernel's buffers of sockets.
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    static char message[100000];
    struct rlimit limit = {60000, 60000};
    while (access("go", F_OK)) usleep(1000);
    setrlimit(RLIMIT_NOFILE, &limit);
    for (;;) {
        int ends[2], size = 1 << 20;
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return 2;
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        while (send(ends[0], message, sizeof message, MSG_DONTWAIT) > 0) {}
        usleep(5000);
    }
}
