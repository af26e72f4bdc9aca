# Set-up comes first in every goal: it installs what is missing and is silent when nothing is.
.PHONY: run test lint web npm setup bench-core bench-engine crash soak

run:   ; @scripts/run
test:  ; @scripts/test
lint:  ; @scripts/lint
web:   ; @scripts/web
npm:   ; @scripts/npm
setup: ; @scripts/setup test

# One JSON object a line; exit 1 where a limit is missed.
bench-core: ; @scripts/bench core reference
bench-engine: ; @scripts/bench server engine

# Many minutes.
crash: ; @scripts/crash

# Ten minutes.
soak: ; @scripts/crash soak
