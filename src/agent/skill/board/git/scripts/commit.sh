# Commits what git knows and has changed, and the new file that is named: --message TEXT [--add FILE]
set -eu
message=
add=
while [ $# -ge 2 ]; do
    case "$1" in
        --message) message=$2 ;;
        --add) add=$2 ;;
        *) echo "there is no option $1" >&2; exit 2 ;;
    esac
    shift 2
done
if [ -z "$message" ]; then
    echo "it needs --message TEXT" >&2
    exit 2
fi
git add -u -- .
if [ -n "$add" ]; then
    git add -- "$add"
fi
if git diff --cached --quiet; then
    echo "there is nothing to commit: no file that git knows has changed" >&2
    exit 1
fi
git commit -q -m "$message"
git log -n 1 --stat --format='%h %s'
