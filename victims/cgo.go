// Go with cgo: C allocations of goroutines on many threads. Go's own heap is not malloc's, and not counted.
// Go's callers are on the goroutines' own stacks.
// needs: go
// build: -ldflags=-compressdwarf=false
// seconds: 60
// expect: frame=main.main.func1 allocs=1000 alloc_bytes=293000 frees=500 outstanding=500
// expect: frame=victim_cgo allocs=1000 alloc_bytes=293000 frees=500 outstanding=500
package main

/*
#cgo CFLAGS: -g -O1
#include <stdlib.h>
__attribute__((noinline)) static void *victim_cgo(void) { return malloc(293); }
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

func main() {
	var group sync.WaitGroup
	for g := 0; g < 20; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 50; i++ {
				block := C.victim_cgo()
				if i%2 == 0 {
					C.free(unsafe.Pointer(block))
				}
			}
		}()
	}
	group.Wait()
	fmt.Println("done")
}
