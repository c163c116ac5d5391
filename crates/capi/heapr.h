/* Heap trace sessions: link with -lheapr. Made from crates/capi by cargo xtask header: do not edit. */

#ifndef HEAPR_H
#define HEAPR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 Allocations carry stacks.
 */
#define HEAPR_STACK_ALLOC 1

/*
 Reallocations carry stacks.
 */
#define HEAPR_STACK_REALLOC 2

/*
 Frees carry stacks.
 */
#define HEAPR_STACK_FREE 4

/*
 The creation of heaps carries stacks.
 */
#define HEAPR_STACK_CREATE 8

/*
 The destruction of heaps carries stacks.
 */
#define HEAPR_STACK_DESTROY 16

/*
 Events that have stacks by default: allocations, reallocations, the creation of heaps.
 */
#define HEAPR_STACK_DEFAULT ((HEAPR_STACK_ALLOC | HEAPR_STACK_REALLOC) | HEAPR_STACK_CREATE)

/*
 A thread that finds no free buffer waits.
 */
#define HEAPR_ON_FULL_BLOCK 0

/*
 A thread that finds no free buffer goes on, and the event is counted as lost.
 */
#define HEAPR_ON_FULL_DROP 1

/*
 Result of a call.
 */
enum heapr_result {
  /*
   Success.
   */
  HEAPR_OK = 0,
  /*
   A session of that name exists.
   */
  HEAPR_ALREADY_EXISTS = 1,
  /*
   The session has ended.
   */
  HEAPR_NO_SUCH_SESSION = 2,
  /*
   A property, flag, name or pointer makes no sense.
   */
  HEAPR_INVALID = 3,
  /*
   Not enough memory.
   */
  HEAPR_OUT_OF_MEMORY = 4,
  /*
   No such process.
   */
  HEAPR_NO_SUCH_PROCESS = 5,
  /*
   Not allowed; heapr_last_error names the setting.
   */
  HEAPR_NO_PERMISSION = 6,
  /*
   A process cannot be traced; heapr_last_error says why.
   */
  HEAPR_NOT_TRACEABLE = 7,
  /*
   The file could not be made or written.
   */
  HEAPR_OUTPUT = 8,
  /*
   Whatever else; heapr_last_error says what.
   */
  HEAPR_OTHER = 9,
};

/*
 A session. Made by heapr_start, ended by heapr_stop or heapr_cancel.
 */
struct heapr_trace;

/*
 Properties of a session. heapr_properties_init sets the defaults; then change what is to be
 different.
 */
struct heapr_properties {
  /*
   Size of this structure, set by heapr_properties_init.
   */
  size_t size;
  /*
   Path of the trace file. Must be set.
   */
  const char *output;
  /*
   Not 0: an existing file is overwritten.
   */
  uint32_t overwrite;
  /*
   A heapr_mode.
   */
  uint32_t mode;
  /*
   Bytes for events in HEAPR_MODE_MEMORY.
   */
  uint64_t memory_bytes;
  /*
   The recording ends when the file has this size; 0: it has no bound.
   */
  uint64_t max_file_bytes;
  /*
   Bytes per buffer: a power of two from 4096 to 1048576.
   */
  size_t buffer_bytes;
  /*
   Buffers that are there from the start.
   */
  size_t min_buffers;
  /*
   Most buffers.
   */
  size_t max_buffers;
  /*
   Milliseconds between two states of the file that survive a crash.
   */
  uint32_t flush_timer_ms;
  /*
   HEAPR_ON_FULL_BLOCK or HEAPR_ON_FULL_DROP.
   */
  uint32_t on_full;
  /*
   Frames kept of a stack, innermost first; 0: all.
   */
  uint32_t max_frames;
  /*
   Not 0: mmap, munmap and mremap are recorded as a second heap.
   */
  uint32_t record_mmap;
  /*
   Not 0: children of the processes are recorded too.
   */
  uint32_t follow_children;
};

/*
 State of a session.
 */
struct heapr_status {
  /*
   Not 0: the file has reached its largest size, and recording has ended.
   */
  uint32_t is_full;
  /*
   Not 0: the file could not be written to its end.
   */
  uint32_t has_write_error;
  /*
   Nanoseconds since the start.
   */
  uint64_t duration_ns;
  /*
   Buffers that may be in use.
   */
  uint64_t buffer_count;
  /*
   Buffers that are free.
   */
  uint64_t buffers_free;
  /*
   Buffers taken to their end.
   */
  uint64_t buffers_written;
  /*
   Events taken.
   */
  uint64_t event_count;
  /*
   Events that found no buffer.
   */
  uint64_t events_lost;
  /*
   Bytes of the file.
   */
  uint64_t file_bytes;
  /*
   Live blocks.
   */
  uint64_t live_count;
  /*
   Bytes in live blocks.
   */
  uint64_t live_bytes;
  /*
   Most bytes that were live at once.
   */
  uint64_t peak_bytes;
  /*
   Process images seen.
   */
  uint64_t process_count;
  /*
   Number of processes that run.
   */
  uint64_t live_process_count;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Sets the defaults.

 # Safety
 properties points to a structure of this type that may be written.
 */
enum heapr_result heapr_properties_init(struct heapr_properties *properties);

/*
 The calling thread's last failure in a sentence; empty before the first failure. Valid until
 this thread's next call that fails.
 */
const char *heapr_last_error(void);

/*
 Registers and starts a session for a set of processes, which may be empty. When it returns, the
 processes are traced. stack_events: HEAPR_STACK_*. *trace is set to null if it fails.

 # Safety
 trace may be written; properties was set by heapr_properties_init and its output is a
 text; name is a text; pids points to pid_count numbers.
 */
enum heapr_result heapr_start(struct heapr_trace **trace,
                              const struct heapr_properties *properties,
                              const char *name,
                              const uint32_t *pids,
                              size_t pid_count,
                              uint32_t stack_events);

/*
 As heapr_start, with a program that is started with the session and traced from its first
 instruction. argv ends in a null pointer; its first text is the program's path. Its standard
 input is empty; it is a child of this process.

 # Safety
 As heapr_start; argv is an array of texts that ends in a null pointer.
 */
enum heapr_result heapr_start_program(struct heapr_trace **trace,
                                      const struct heapr_properties *properties,
                                      const char *name,
                                      const char *const *argv,
                                      uint32_t stack_events);

/*
 Adds and removes processes, and chooses anew which events carry stacks (HEAPR_STACK_*). If some
 processes fail the others are done all the same, and the result is that of the first that
 failed.

 # Safety
 trace is a handle that is not ended; add and remove point to as many numbers as their
 counts say.
 */
enum heapr_result heapr_update(struct heapr_trace *trace,
                               const uint32_t *add,
                               size_t add_count,
                               const uint32_t *remove,
                               size_t remove_count,
                               uint32_t stack_events);

/*
 Tells how a session stands.

 # Safety
 trace is a handle that is not ended; status may be written.
 */
enum heapr_result heapr_query(struct heapr_trace *trace, struct heapr_status *status);

/*
 Puts a text into the trace, with the time.

 # Safety
 trace is a handle that is not ended; marker is a text.
 */
enum heapr_result heapr_mark(struct heapr_trace *trace, const char *marker);

/*
 Takes a snapshot of the live heaps of some processes, or of all (pid_count 0), without
 stopping them.

 # Safety
 trace is a handle that is not ended; name is a text; pids points to pid_count numbers.
 */
enum heapr_result heapr_snapshot(struct heapr_trace *trace,
                                 const char *name,
                                 const uint32_t *pids,
                                 size_t pid_count);

/*
 Takes a snapshot of the live heap of one process with its graph: which block refers to which,
 and what holds them. stops 0: the process stands still until its memory is copied, for at most
 max_pause_ms. 1: it stands still until all is read, without a copy. 2: it does not stand
 still, and is read twice while it runs.

 # Safety
 trace is a handle that is not ended; name is a text.
 */
enum heapr_result heapr_graph_snapshot(struct heapr_trace *trace,
                                       const char *name,
                                       uint32_t pid,
                                       uint32_t max_pause_ms,
                                       int32_t stops);

/*
 Ends a session: what is in the buffers is taken, the file is completed, the processes run on as
 they were. The handle is given back whatever the result. status, if not null, gets the totals.

 # Safety
 trace is a handle that is not ended, and is not used again; status is null or may be
 written.
 */
enum heapr_result heapr_stop(struct heapr_trace *trace, struct heapr_status *status);

/*
 Ends a session and removes its file. The handle is given back whatever the result.

 # Safety
 trace is a handle that is not ended, and is not used again.
 */
enum heapr_result heapr_cancel(struct heapr_trace *trace);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HEAPR_H */
