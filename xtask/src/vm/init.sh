#!/bin/busybox sh
# First program of the machine: loads the disks' modules, and starts the trials.
b=/bin/busybox
$b mkdir -p /proc /sys /dev /new
$b mount -t proc none /proc
$b mount -t sysfs none /sys
$b mount -t devtmpfs none /dev
while read -r module; do $b insmod /modules/$module; done < /order
tries=0
while [ ! -b /dev/vdc ] && [ $tries -lt 100 ]; do $b sleep 0.1; tries=$((tries + 1)); done
$b mount -t ext4 /dev/vda /new && $b mount -t ext4 /dev/vdb /new/work
for kind in proc sysfs devtmpfs; do
  case $kind in proc) to=proc ;; sysfs) to=sys ;; *) to=dev ;; esac
  $b mount -t $kind none /new/$to
done
$b mkdir -p /new/dev/shm /new/dev/pts
$b mount -t tmpfs none /new/dev/shm
$b mount -t devpts none /new/dev/pts
$b mount -t tmpfs none /new/tmp
$b mount -t tmpfs none /new/run
$b mount -t tmpfs none /new/results
$b mount -t cgroup2 none /new/sys/fs/cgroup
$b ip link set lo up
if [ -e /new/work/systemd ]; then
  # The trials are a unit of it, which ends the machine.
  $b cp /new/work/systemd/* /new/etc/systemd/system/
  # Without a number of the machine systemd would ask for its name, time and language.
  echo 00000000000000000000000000000001 > /new/etc/machine-id
  $b umount /proc /sys /dev
  exec $b switch_root /new /lib/systemd/systemd --unit=trials.service
fi
$b chroot /new /bin/bash /work/trials.sh
$b tar -C /new/results -cf /dev/vdc .
$b sync
echo "the machine ends"
$b poweroff -f
