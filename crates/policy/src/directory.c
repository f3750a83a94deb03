/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a directory's policy is compiled from: the entry points, the assertions that its
 * structures are coreward's, and its tables, which may have more entries than coreward's.
 */
#include "native.c"

#define COUNT(name, value) _Static_assert(name >= value, #name ": make bindings");
#include "layout.c"

/* name, kernels, seed, help */
const char *const cw_features[][4] = {
#define FEATURE(name, kernels, seed, help) { #name, kernels, seed, help },
#define TUNABLE(...)
#include "features.def"
#undef FEATURE
#undef TUNABLE
};

/* name, unit, help */
const char *const cw_tunables[][3] = {
#define FEATURE(...)
#define TUNABLE(name, value, min, max, unit, help) { #name, unit, help },
#include "features.def"
#undef TUNABLE
};

/* default, least and greatest value */
const s64 cw_tunable_values[][3] = {
#define TUNABLE(name, value, min, max, unit, help) { value, min, max },
#include "features.def"
#undef FEATURE
#undef TUNABLE
};

/* name, text */
const char *const cw_reasons[][2] = {
#define REASON(name, text) { #name, text },
#include "reasons.def"
#undef REASON
};

const char *const cw_queue_reasons[][2] = {
#define QUEUE_REASON(name, text) { #name, text },
#include "queue/reasons.def"
#undef QUEUE_REASON
};

const char *const cw_notes[][2] = {
#define NOTE(name, bit, text) { #name, text },
#include "notes.def"
};

const u32 cw_note_bits[] = {
#undef NOTE
#define NOTE(name, bit, text) 1u << bit,
#include "notes.def"
#undef NOTE
};

/* of each table: features, tunables, reasons, queue reasons, notes */
const u32 cw_lengths[] = {
	CW_NR_FEATURES,
	CW_NR_TUNABLES,
	CW_NR_REASONS,
	CW_NR_QUEUE_REASONS,
	sizeof(cw_notes) / sizeof(cw_notes[0]),
};
