# SPDX-License-Identifier: MIT
# `make fuzz-<input>` fuzzes tests/fuzz/<input>_fuzzer.c for FUZZ_SECONDS with clang's libFuzzer,
# ASan and UBSan.  What it finds goes, minimised, into tests/fuzz/corpora/<input>, which `make check`
# replays.  What a tree that stays open holds by pointers in reserved pages looks like a leak to libFuzzer.

FUZZ_SECONDS ?= 60
fuzz_inputs := $(patsubst tests/fuzz/%_fuzzer.c,%,$(wildcard tests/fuzz/*_fuzzer.c))

$(fuzz_inputs:%=fuzz-%): fuzz-%:
	@$(MAKE) --no-print-directory CC=clang CUDA=0 B=build/fuzz SAN=address,undefined \
		CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' build/fuzz/tests/fuzz/$*_fuzzer
	@mkdir -p build/fuzz/corpora/$*
	build/fuzz/tests/fuzz/$*_fuzzer -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 \
		$(if $(filter statement names store,$*),-detect_leaks=0) -artifact_prefix=build/fuzz/corpora/$*- build/fuzz/corpora/$* $(wildcard tests/fuzz/corpora/$*)

build/fuzz/tests/fuzz/%_fuzzer: build/fuzz/tests/fuzz/%_fuzzer.o build/fuzz/libtools.a build/fuzz/libprimefs.a
	$(CC) $(all_ldflags) -fsanitize=fuzzer -o $@ $^ $(libs)

fuzz-hour: ## fuzz statements and stores for an hour each
	@$(MAKE) --no-print-directory FUZZ_SECONDS=3600 fuzz-statement fuzz-store

fuzz: $(fuzz_inputs:%=fuzz-%) ## fuzz each parser for FUZZ_SECONDS (fuzz-<input>: one)

.PHONY: fuzz fuzz-hour $(fuzz_inputs:%=fuzz-%)
