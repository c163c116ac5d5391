// A program that brings pages of its memory itself: by userfaultfd (missing, shared, write, minor,
// forks), or as the server of the file that it has mapped (fuse FOLDER). Of 64 pages one is there at
// first. At the end of its input it touches the others, and ends with 0 if it was asked for each of them
// once and each holds what it has brought; 77: not allowed here.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64 };
static int handle;
static volatile int asked;
static const char *mode;
static char *area;
void *volatile block;

static void bring(unsigned long page) {
    static char *content;
    if (!content) content = aligned_alloc(PAGE, PAGE);
    memset(content, 7, PAGE);
    if (!strcmp(mode, "write")) {
        struct uffdio_writeprotect allow = {.range = {page, PAGE}};
        ioctl(handle, UFFDIO_WRITEPROTECT, &allow);
    } else if (!strcmp(mode, "minor")) {
        struct uffdio_continue go_on = {.range = {page, PAGE}};
        ioctl(handle, UFFDIO_CONTINUE, &go_on);
    } else {
        struct uffdio_copy copy = {.dst = page, .src = (unsigned long)content, .len = PAGE};
        ioctl(handle, UFFDIO_COPY, &copy);
    }
}

static void *serve_faults(void *unused) {
    for (;;) {
        struct uffd_msg message;
        if (read(handle, &message, sizeof message) != sizeof message) continue;
        if (message.event == UFFD_EVENT_FORK) close(message.arg.fork.ufd);
        if (message.event != UFFD_EVENT_PAGEFAULT) continue;
        asked++;
        bring(message.arg.pagefault.address & ~(PAGE - 1UL));
    }
    return unused;
}

static void answer(struct fuse_in_header *in, int error, void *data, size_t bytes) {
    struct fuse_out_header out = {sizeof out + (error ? 0 : bytes), -error, in->unique};
    struct iovec pieces[2] = {{&out, sizeof out}, {data, error ? 0 : bytes}};
    if (writev(handle, pieces, 2) < 0 && errno != ENOENT) perror("fuse");
}

static struct fuse_attr facts_of(unsigned long node) {
    struct fuse_attr facts = {.ino = node, .nlink = 1, .blksize = PAGE};
    facts.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
    facts.size = node == 1 ? 0 : PAGE * PAGES;
    return facts;
}

static void *serve_file(void *unused) {
    static char request[1 << 20], content[PAGE * PAGES];
    memset(content, 7, sizeof content);
    for (;;) {
        ssize_t bytes = read(handle, request, sizeof request);
        if (bytes < (ssize_t)sizeof(struct fuse_in_header)) {
            if (errno == ENODEV) return unused;
            continue;
        }
        struct fuse_in_header *in = (void *)request;
        void *body = in + 1;
        if (in->opcode == FUSE_INIT) {
            struct fuse_init_in *init = body;
            struct fuse_init_out out = {.major = 7, .minor = init->minor < 31 ? init->minor : 31, .max_write = PAGE, .max_readahead = 0};
            answer(in, 0, &out, sizeof out);
        } else if (in->opcode == FUSE_LOOKUP) {
            struct fuse_entry_out out = {.nodeid = 2, .entry_valid = 100, .attr_valid = 100, .attr = facts_of(2)};
            answer(in, strcmp(body, "file") ? ENOENT : 0, &out, sizeof out);
        } else if (in->opcode == FUSE_GETATTR) {
            struct fuse_attr_out out = {.attr_valid = 100, .attr = facts_of(in->nodeid)};
            answer(in, 0, &out, sizeof out);
        } else if (in->opcode == FUSE_OPEN || in->opcode == FUSE_OPENDIR) {
            struct fuse_open_out out = {.fh = 1};
            answer(in, 0, &out, sizeof out);
        } else if (in->opcode == FUSE_READ) {
            struct fuse_read_in *wanted = body;
            asked += wanted->size / PAGE;
            answer(in, 0, content + wanted->offset, wanted->size);
        } else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET && in->opcode != FUSE_INTERRUPT) {
            answer(in, in->opcode == FUSE_FLUSH || in->opcode == FUSE_RELEASE ? 0 : ENOSYS, NULL, 0);
        }
    }
}

static void map_own_file(const char *folder) {
    char options[100], path[4096];
    handle = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (handle < 0) exit(77);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d", handle, getuid(), getgid());
    if (mount("own_pages", folder, "fuse", MS_NOSUID | MS_NODEV, options)) exit(77);
    pthread_t thread;
    pthread_create(&thread, NULL, serve_file, NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    int file = open(path, O_RDWR);
    area = mmap(NULL, PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (area == MAP_FAILED) { perror("mmap"); exit(1); }
    madvise(area, PAGE * PAGES, MADV_RANDOM);
    // While there is somebody who answers.
    close(file);
}

static void map_registered(void) {
    int is_shared = !strcmp(mode, "shared") || !strcmp(mode, "minor"), file = -1;
    unsigned long kind = UFFDIO_REGISTER_MODE_MISSING;
    struct uffdio_api api = {.api = UFFD_API};
    if (!strcmp(mode, "minor")) { kind = UFFDIO_REGISTER_MODE_MINOR; api.features = UFFD_FEATURE_MINOR_SHMEM; }
    if (!strcmp(mode, "write")) { kind = UFFDIO_REGISTER_MODE_WP; api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP; }
    if (!strcmp(mode, "forks")) api.features = UFFD_FEATURE_EVENT_FORK;
    handle = syscall(SYS_userfaultfd, O_CLOEXEC);
    if (handle < 0 || ioctl(handle, UFFDIO_API, &api)) exit(77);
    if (is_shared) {
        file = memfd_create("own pages", 0);
        if (ftruncate(file, PAGE * PAGES)) exit(1);
    }
    if (!strcmp(mode, "minor")) {
        char *filled = mmap(NULL, PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        memset(filled, 7, PAGE * PAGES);
        munmap(filled, PAGE * PAGES);
    }
    area = mmap(NULL, PAGE * PAGES, PROT_READ | PROT_WRITE, is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    if (!strcmp(mode, "write")) memset(area, 7, PAGE * PAGES);
    struct uffdio_register range = {.range = {(unsigned long)area, PAGE * PAGES}, .mode = kind};
    if (ioctl(handle, UFFDIO_REGISTER, &range)) exit(77);
    if (!strcmp(mode, "write")) {
        struct uffdio_writeprotect protect = {.range = range.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
        if (ioctl(handle, UFFDIO_WRITEPROTECT, &protect)) exit(77);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, serve_faults, NULL);
}

static int touch(int page) {
    volatile char *place = area + page * PAGE;
    if (!strcmp(mode, "write")) *place = 7;
    return *place == 7;
}

int main(int count, char **words) {
    char line[8];
    mode = count > 1 ? words[1] : "missing";
    if (!strcmp(mode, "fuse")) map_own_file(words[2]); else map_registered();
    int is_right = touch(0);
    block = malloc(777);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {}
    int before = asked;
    for (int page = 1; page < PAGES; page++) is_right &= touch(page);
    printf("asked %d, then %d, right %d\n", before, asked, is_right);
    fflush(stdout);
    if (!strcmp(mode, "fuse")) munmap(area, PAGE * PAGES), umount2(words[2], 0);
    // A file may be read by its name, too: its symbols are looked for.
    int is_asked_once = before == 1 && asked == PAGES;
    _exit(is_right && (is_asked_once || !strcmp(mode, "fuse")) ? 0 : 1);
}
