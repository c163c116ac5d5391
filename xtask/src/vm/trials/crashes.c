// Makes a list that a variable holds and blocks that nothing holds, and ends by a signal.
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char text[100];
};

struct node *head;
void *volatile last;

__attribute__((noinline)) static void link_nodes(int count) {
    for (int number = 0; number < count; number++) {
        struct node *node = malloc(sizeof *node);
        node->next = head;
        strcpy(node->text, "kept");
        head = node;
    }
}

__attribute__((noinline)) static void lose(int count) {
    for (int number = 0; number < count; number++) last = malloc(1000);
    last = NULL;
}

__attribute__((noinline)) static int deep(struct node *held) {
    struct node *own = malloc(300);
    own->next = held;
    if (own->next == head) abort();
    return own->text[0];
}

int main(void) {
    link_nodes(50);
    lose(7);
    return deep(head);
}
