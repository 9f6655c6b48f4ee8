# SPDX-License-Identifier: Apache-2.0
# Installs the Debian package $1 in a copy of this system, runs what it brings as its users would, and purges it. Runs as
# root in namespaces of its own (mounts, network, processes), so that this system stays as it is.

mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
root=/mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work none $root
mount -t proc proc $root/proc
mount --rbind /dev $root/dev
mount -t tmpfs none $root/dev/shm
chmod 1777 $root/dev/shm
ip link set lo up
cp "$1" $root/tmp/taran.deb

cat >$root/tmp/try <<'TRY'
set -eu
fail() { echo "package: $*" >&2; exit 1; }
unset AERON_DIR
export DEBIAN_FRONTEND=noninteractive
PATH=/usr/sbin:/usr/bin:/sbin:/bin

dpkg --install /tmp/taran.deb >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; fail "does not install"; }
taran version >/dev/null
getent passwd taran | grep -q ':/var/lib/taran:' || fail "has made no user"
getent group taran >/dev/null || fail "has made no group"
for page in taran taran-driver taran-archive; do
    [ -e /usr/share/man/man1/$page.1.gz ] || fail "has no manual page $page"
done
bash -c '. /usr/share/bash-completion/completions/taran && complete -p taran' >/dev/null || fail "has no completions"
for unit in taran-driver taran-archive; do
    # It prints what it ignores, and succeeds.
    said=$(systemd-analyze verify --man=no /usr/lib/systemd/system/$unit.service 2>&1) && [ -z "$said" ] || fail "$unit.service: $said"
    ! systemctl --root=/ is-enabled --quiet $unit.service || fail "$unit.service is enabled"
done

# What the line $2 of the unit $1 says.
of() { sed -n "s/^$2=//p" /usr/lib/systemd/system/$1.service; }
# Starts the command of a unit as its user, with its state directory.
start() {
    user=$(of "$1" User)
    state=$(of "$1" StateDirectory)
    [ -z "$state" ] || install --directory --owner "$user" --group "$(of "$1" Group)" --mode "$(of "$1" StateDirectoryMode)" "/var/lib/$state"
    setpriv --reuid "$user" --regid "$(of "$1" Group)" --init-groups --no-new-privs --bounding-set=-all $(of "$1" ExecStart) >"/tmp/$1.log" 2>&1 &
}
# Waits until a command succeeds, for far longer than it takes.
await() {
    tries=0
    until "$@" >/tmp/await.log 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { cat /tmp/await.log /tmp/taran-*.log; fail "waited in vain for: $*"; }
        sleep 0.1
    done
}
start taran-driver
driver=$!
await taran driver-info -d /dev/shm/aeron-taran
[ "$(stat --format '%U %G %a' /dev/shm/aeron-taran)" = "taran taran 770" ] || fail "mode of the driver's directory"
start taran-archive
archive=$!
await taran recordings list -d /dev/shm/aeron-taran 'aeron:udp?endpoint=localhost:8010'
kill -TERM $archive
wait $archive || fail "the archive ended with $?"
kill -TERM $driver
status=0
wait $driver || status=$?
of taran-driver SuccessExitStatus | grep -qw $status || fail "the driver ended with $status"

dpkg --purge taran >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; fail "does not purge"; }
for left in /usr/bin/taran /etc/taran /usr/lib/systemd/system/taran-driver.service; do
    [ ! -e $left ] || fail "leaves $left"
done
echo "package: installed, driver and archive run as their units run them, purged"
TRY
chroot $root sh /tmp/try
