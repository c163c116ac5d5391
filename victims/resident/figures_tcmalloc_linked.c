// tcmalloc linked into the program itself.
// needs: gperftools/malloc_extension_c.h
// build: -l:libtcmalloc_minimal.a -lstdc++ -lm -pthread
#include "figures_tcmalloc.c"
