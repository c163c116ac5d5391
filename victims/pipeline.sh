#!/bin/sh
# A script of its own with a pipeline: interpreter, children and grandchildren are traced, the status is the last one's.
# exit: 3
# expect-processes: >=3
printf 'b\na\n' | sort | cat
exit 3
