// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace clearhead::apps {

// Lets threads that wait for the others go to sleep soon. The OpenMP runtime of GCC lets them spin for long, and
// where the machine is busy with other work they take the cores from those that they wait for (bench_attend.py shows
// it). The runtime reads its settings before main, hence the program starts itself once more. Does nothing if the user
// has settings of their own. Call first thing in main.
void start_with_short_waits(char** argv);

}  // namespace clearhead::apps
