// Prints the figures of a tcmalloc that is linked into the program.
// needs: gperftools/malloc_extension_c.h
// build: -l:libtcmalloc_minimal.a -lstdc++ -lm -pthread
#include "figures_tcmalloc.c"
