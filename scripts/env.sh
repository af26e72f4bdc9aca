# Sourced by every script: where things live. Builds and tools are kept outside the clone, so
# that a fresh clone does not build the world again; nothing needs them to be there already.
cd "$(dirname "$0")/.."
: "${SLUICEGATE_CACHE:=$HOME/.cache/sluicegate}"
: "${CARGO_TARGET_DIR:=$SLUICEGATE_CACHE/target}"
TOOLS=$SLUICEGATE_CACHE/tools
PATH=$TOOLS/bin:$TOOLS/node_modules/.bin:$PATH:$HOME/.cargo/bin
export CARGO_TARGET_DIR PATH

# A clone that is built once has no use for what speeds up the second build.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0

# Where this machine keeps its crates and tools is nobody's business who uses what is shipped, and every
# place in the code that can panic carries such a path. Of several that fit, the last one counts.
remapped() {
    printf %s "--remap-path-prefix=$HOME=home"
    for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        printf %s " --remap-path-prefix=$crates=crates"
    done
}

say() { printf '\n== %s\n' "$*"; }
die() { printf 'sluicegate: %s\n' "$*" >&2; exit 2; }
has() { command -v "$1" >/dev/null 2>&1; }
