# Everything by its short name. Each target sets up what it needs; the work is done by CMake presets and scripts/.
.PHONY: build demo check bench format lint clean

build:
	@scripts/setup.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset program

demo:
	@scripts/demo.sh

check:
	@scripts/check.sh

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
