# shellcheck shell=bash
# What the scripts share. Sourced, not run.

# Where the repository is.
# shellcheck disable=SC2034
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }
complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
heading() { printf '\n== %s\n' "$*"; }

# Ends with what to do where there is no Swift, or too old a one.
need_swift() {
    local version
    if ! command -v swift >/dev/null; then
        complain "Swift is not installed, or not in PATH. Yonder needs Swift 6.2 or newer:"
        complain "    https://www.swift.org/install/linux/ (swiftly installs it in two commands)"
        exit 1
    fi
    version=$(swift --version 2>/dev/null </dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
    case $version in
        6.0 | 6.1 | [0-5].* | '')
            complain "this is Swift ${version:-of an unknown version}; Yonder needs Swift 6.2 or newer:"
            complain "    https://www.swift.org/install/linux/"
            exit 1
            ;;
    esac
}

# Installs the packages that are missing, as root or with sudo. Each argument is PACKAGE=CHECK: a program, or
# pkg-config:NAME for a library, or the path of a file, which may have * in it.
need_packages() {
    local pair package check missing=() as_root=()
    for pair in "$@"; do
        package=${pair%%=*}
        check=${pair#*=}
        case $check in
            pkg-config:*) pkg-config --exists "${check#pkg-config:}" 2>/dev/null || missing+=("$package") ;;
            /*) compgen -G "$check" >/dev/null || missing+=("$package") ;;
            *) PATH=$PATH:/usr/sbin:/sbin command -v "$check" >/dev/null || missing+=("$package") ;;
        esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        complain "missing here: ${missing[*]} (the names are Debian's); install them and try again"
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            complain "as root, please: apt-get install ${missing[*]}"
            exit 1
        fi
        as_root=(sudo)
        # sudo asks on the terminal, also when standard input is none.
        if ! { : </dev/tty; } 2>/dev/null; then as_root=(sudo -n); fi
    fi
    say "installing ${missing[*]}"
    if ! "${as_root[@]}" bash -c "$(declare -f enabled_units install_packages); install_packages \"\$@\"" - "${missing[@]}" \
        </dev/null >&2; then
        complain "could not install ${missing[*]}; as root: apt-get install ${missing[*]}"
        exit 1
    fi
}

# Installs packages, as root. Services in them are neither started now nor enabled: the scripts need only the programs.
install_packages() {
    local before new policy=/usr/sbin/policy-rc.d status=0
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update || return 1
    before=$(enabled_units)
    # An image of a container often has a policy of its own that starts nothing.
    if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        trap 'exit 130' INT TERM HUP
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || return 1
    fi
    apt-get -qq -y --no-install-recommends install "$@" || status=1
    new=$(comm -13 <(printf '%s\n' "$before") <(enabled_units))
    # Without systemctl there was no unit before, and systemd itself may have come now.
    # shellcheck disable=SC2086
    [ -z "$before" ] || [ -z "$new" ] || systemctl --quiet disable $new || true
    return "$status"
}

# The services, sockets and timers that start with the machine.
enabled_units() {
    systemctl list-unit-files --type=service,socket,timer --state=enabled --no-legend --no-pager 2>/dev/null |
        awk '{ print $1 }' | sort
}

# Installs a program from PyPI into a folder of its own, where it is missing. Arguments: program, folder, packages.
# Without PyPI the tests that need it are passed over, and say so.
need_python_program() {
    local program=$1 folder=$2
    shift 2
    if command -v "$program" >/dev/null || [ -x "$folder/bin/$program" ]; then return 0; fi
    python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv=/nonexistent
    say "installing $program"
    if ! { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"; } \
        </dev/null >&2; then
        complain "without $program: it could not be installed from PyPI"
        rm -rf "$folder"
    fi
}

# What building takes beside Swift, and what mounting does.
need_build_packages() {
    need_packages libfuse3-dev=pkg-config:fuse3 libsqlite3-dev=pkg-config:sqlite3 pkg-config=pkg-config \
        fuse3=fusermount3 attr=getfattr "$@"
}

# Says why nothing can be mounted here; prints nothing when it can.
mount_obstacle() {
    if [ ! -e /dev/fuse ] && [ "$(id -u)" -eq 0 ]; then modprobe fuse 2>/dev/null || true; fi
    if [ ! -e /dev/fuse ]; then
        say "there is no /dev/fuse (in a container: run it with --device /dev/fuse --cap-add SYS_ADMIN)"
    elif [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
        say "this user may not open /dev/fuse, which everybody may elsewhere; as root: chmod 666 /dev/fuse"
    fi
}

# A new scratch directory in $scratch. What is started with YONDER_SCRATCH in its environment belongs to it.
make_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/yonder.XXXXXX")
    # An ordinary user that a test plays has to get through.
    chmod 755 "$scratch"
}

# Takes away every mount below the scratch directory, ends what was started in its name, and removes it.
remove_scratch() {
    local mountpoint environment lock pid
    # A subshell that is ended has nothing to take away.
    [ "$BASHPID" = "$$" ] && [ -n "${scratch:-}" ] && [ -d "$scratch" ] || return 0
    mounts_below "$scratch" | while IFS= read -r -d '' mountpoint; do
        if [ "$(id -u)" -eq 0 ]; then umount -l "$mountpoint"; else fusermount3 -u -z "$mountpoint"; fi 2>/dev/null || true
    done
    for environment in /proc/[0-9]*/environ; do
        pid=${environment#/proc/}
        pid=${pid%/environ}
        [ "$pid" != "$$" ] || continue
        if { tr '\0' '\n' <"$environment"; } 2>/dev/null | grep -qxF "YONDER_SCRATCH=$scratch"; then
            kill -KILL "$pid" 2>/dev/null || true
        fi
    done
    # Daemons are not dumpable: their environment is for root alone. The process that holds a lock has written its number there.
    # After their keepers, which would start others.
    find "$scratch" -xdev -name yonderd.lock 2>/dev/null | while IFS= read -r lock; do
        flock -n "$lock" true 2>/dev/null || kill -KILL "$(cat "$lock")" 2>/dev/null || true
    done
    # Tests make directories that their owner may not write to.
    rm -rf --one-file-system "$scratch" 2>/dev/null ||
        { chmod -R u+rwX "$scratch" 2>/dev/null || true; rm -rf --one-file-system "$scratch"; }
    scratch=
}

# The mounts below a directory, each with a NUL after it. The last mount comes first: an inner mount before the one it lies in.
mounts_below() {
    local line found=()
    while read -r _ line _; do
        # What proc_mounts(5) escapes.
        line=${line//'\040'/ }
        line=${line//'\011'/$'\t'}
        line=${line//'\012'/$'\n'}
        line=${line//'\043'/#}
        line=${line//'\134'/\\}
        [[ $line != "$1"/* ]] || found=("$line" "${found[@]}")
    done </proc/mounts
    [ ${#found[@]} -eq 0 ] || printf '%s\0' "${found[@]}"
}
