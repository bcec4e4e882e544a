# Everything by its short name. Each target sets up what it needs; the work is done by CMake presets and scripts/.
.PHONY: build demo check check-gemma bench format lint clean

build:
	@scripts/setup.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset program

# GNU make ends with 2 whatever a recipe ended with, except when it was only asked: so `make demo` keeps the 1 of demo.sh.
ifeq ($(MAKECMDGOALS),demo)
MAKEFLAGS += --question
endif
demo:
	+@MAKEFLAGS= scripts/demo.sh

check:
	@scripts/check.sh

# Not part of check: the user has to accept the terms of this model before it is fetched.
check-gemma:
	@scripts/check_gemma.sh

bench:
	@scripts/bench.sh

format:
	@scripts/setup.sh check
	@scripts/format.sh

lint:
	@scripts/setup.sh check
	@scripts/lint.sh

clean:
	@cmake -E rm -rf build
