#!/bin/sh
# A script with a pipeline: interpreter, children and grandchildren are traced, and the status is
# that of the last one.
# exit: 3
# expect-processes: >=3
printf 'b\na\n' | sort | cat
exit 3
