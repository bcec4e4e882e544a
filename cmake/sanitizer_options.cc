// SPDX-License-Identifier: Apache-2.0
// Linked into every program of a build with sanitizers.

// The OpenMP runtime of clang keeps what it knows of its threads until the process ends.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libomp.so\n"; }

extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
