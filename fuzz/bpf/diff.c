/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls the policy on random states, natively and in the kernel's BPF, and compares what it returns and what it leaves:
 *
 *	states 20 | diff OBJECT CALLS SEED [FEATURE]
 *
 * OBJECT is the BPF object of the source that is compiled in here as CHECKED, policy/bpf_check.c or
 * bpf_check_balance.c. Standard input has states of machines (struct cw_sys), each for an equal part of the calls.
 * Between calls, some fields of CPUs and tasks get other values, the same on both sides. FEATURE is switched on the BPF
 * side only: then a difference has to be found.
 */
#include CHECKED

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef BALANCE
#define PROGRAM(name) { #name, (int (*)(void *))name, 1, 0, 0 }
#else
#define PROGRAM(name) { #name, name, 0, 0, 0 }
#endif

static struct program {
	const char *name;
	int (*native)(void *);
	int asks; /* it takes a struct cw_balance */
	int fd;
	u64 calls;
} programs[] = {
#ifdef BALANCE
	PROGRAM(start_newidle), PROGRAM(start_periodic), { "next_step", next_step, 0, 0, 0 }, PROGRAM(offer_task),
	PROGRAM(active_balance), PROGRAM(kick_idle_balance), PROGRAM(misfit),
#else
	PROGRAM(place_task), PROGRAM(cpu_idles), PROGRAM(task_is_queued), PROGRAM(task_runs), PROGRAM(task_leaves),
	PROGRAM(process_starts), PROGRAM(thread_ran), PROGRAM(process_ticks),
#endif
};
#define NR_PROGRAMS (sizeof(programs) / sizeof(programs[0]))

/* A global variable on both sides. */
static struct variable {
	const char *name;
	void *native;
	size_t size;
	char *bpf;
} variables[] = {
#define VARIABLE(name) { #name, &name, sizeof(name), NULL }
	VARIABLE(sys),
#ifdef BALANCE
	VARIABLE(lb), VARIABLE(task), VARIABLE(mask),
#else
	VARIABLE(task), VARIABLE(cpus), VARIABLE(wakeup), VARIABLE(decision), VARIABLE(process),
#endif
};
#define NR_VARIABLES (sizeof(variables) / sizeof(variables[0]))

static u64 random_state;
static u64 now;

static u64 next_random(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static u32 below(u32 n)
{
	return next_random() % n;
}

/* Small, around a capacity, or anything up to 2^40. */
static u64 some_value(void)
{
	switch (below(4)) {
	case 0:
		return below(4);
	case 1:
		return below(2048);
	case 2:
		return below(100000000);
	default:
		return next_random() >> 24;
	}
}

/* The number of a feature. */
static int feature_of(const char *name)
{
	static const char *const names[] = {
#define FEATURE(name, ...) #name,
#define TUNABLE(...)
#include "features.def"
#undef FEATURE
#undef TUNABLE
	};

	for (int i = 0; i < CW_NR_FEATURES; i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	fprintf(stderr, "diff: '%s' is not a feature (allowed: those of policy/features.def)\n", name);
	exit(2);
}

static void fail(const char *what)
{
	fprintf(stderr, "diff: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void load(const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	const struct btf_type *section;
	struct bpf_map *map;
	char *bss;
	int id;

	if (!object || bpf_object__load(object))
		fail(path);
	for (size_t i = 0; i < NR_PROGRAMS; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(object, programs[i].name);

		if (!program)
			fail(programs[i].name);
		programs[i].fd = bpf_program__fd(program);
	}
	map = bpf_object__find_map_by_name(object, ".bss");
	if (!map)
		fail(".bss");
	bss = mmap(NULL, bpf_map__value_size(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	id = btf__find_by_name_kind(bpf_object__btf(object), ".bss", BTF_KIND_DATASEC);
	if (bss == MAP_FAILED || id < 0)
		fail(".bss");
	section = btf__type_by_id(bpf_object__btf(object), id);
	for (size_t i = 0; i < NR_VARIABLES; i++) {
		const struct btf_var_secinfo *info = btf_var_secinfos(section);

		for (int at = 0; at < btf_vlen(section); at++, info++) {
			const struct btf_type *type = btf__type_by_id(bpf_object__btf(object), info->type);
			const char *name = btf__name_by_offset(bpf_object__btf(object), type->name_off);

			if (!strcmp(name, variables[i].name) && info->size == variables[i].size)
				variables[i].bpf = bss + info->offset;
		}
		if (!variables[i].bpf)
			fail(variables[i].name);
	}
}

/* Gives both sides the native value of a part of the state. */
static void copy(void *part, size_t size)
{
	for (size_t i = 0; i < NR_VARIABLES; i++) {
		ptrdiff_t offset = (char *)part - (char *)variables[i].native;

		if (offset >= 0 && (size_t)offset < variables[i].size)
			memcpy(variables[i].bpf + offset, part, size);
	}
}

#define SET(field, value) ((field) = (value), copy(&(field), sizeof(field)))

static void change_average(struct cw_avg *avg)
{
	switch (below(5)) {
	case 0:
		SET(avg->load_avg, below(100000));
		break;
	case 1:
		SET(avg->runnable_avg, below(8192));
		break;
	case 2:
		SET(avg->util_avg, below(1100));
		break;
	case 3:
		SET(avg->util_est, below(1100));
		break;
	default:
		SET(avg->last_update_time, now - below(100000000));
	}
}

static void change_cpu(s32 cpu)
{
	struct cw_cpu *rq = &sys.cpu[cpu];

	switch (below(12)) {
	case 0:
		SET(rq->nr_running, below(5));
		SET(rq->cfs_nr_running, rq->nr_running);
		break;
	case 1:
		SET(rq->curr_is_idle, below(2));
		break;
	case 2:
		SET(rq->idle_nr_running, below(3));
		break;
	case 3:
		SET(rq->misfit_task_load, below(2) * some_value());
		break;
	case 4:
		SET(rq->avg_idle, some_value());
		break;
	case 5:
		SET(rq->load_weight, some_value());
		break;
	case 6:
		SET(rq->exit_latency_us, below(2) ? CW_NO_IDLE_STATE : below(200));
		break;
	case 7:
		SET(rq->capacity, 1 + below(rq->capacity_orig));
		break;
	case 8:
		SET(rq->ttwu_pending, below(2));
		break;
	case 9:
		SET(rq->cfs_nr_delayed, below(2));
		break;
	case 10:
		SET(rq->next_balance, now / sys.tick_ns + below(8) - 4);
		break;
	default:
		change_average(&rq->avg);
	}
}

static void change_task(struct cw_task *p)
{
	s32 cpu = below(sys.nr_cpus);

	switch (below(10)) {
	case 0:
		SET(p->flags, next_random() & 0x7ff & ~CW_TASK_PREFERRED_LLC);
		break;
	case 1:
		SET(p->recent_used_cpu, cpu);
		break;
	case 2:
		SET(p->wakee_flips, below(64));
		break;
	case 3:
		SET(p->weight, 3 + below(90000));
		break;
	case 4:
		SET(p->nr_cpus_allowed, 1 + below(sys.nr_cpus));
		break;
	case 5:
		SET(p->max_allowed_capacity, 1 + below(1024));
		break;
	case 6:
		SET(p->exec_start, now - some_value());
		break;
	case 7:
		SET(p->cache_cpu, cpu);
		SET(p->nr_threads, 1 + below(64));
		break;
	case 8:
		SET(p->uclamp_min, below(1025));
		SET(p->uclamp_max, below(1025));
		break;
	default:
		change_average(&p->avg);
	}
}

static void change_mask(struct cw_cpumask *allowed)
{
	memset(allowed, 0, sizeof(*allowed));
	for (u32 cpu = 0; cpu < sys.nr_cpus; cpu++)
		allowed->bits[cpu / 64] |= (u64)(below(4) != 0) << cpu % 64;
	allowed->bits[0] |= 1;
	copy(allowed, sizeof(*allowed));
}

/* Some time passes, in which a few things change. */
static void change(void)
{
	now += below(3000000);
	for (u32 n = 1 + below(6); n; n--)
		change_cpu(below(sys.nr_cpus));
	if (!below(8))
		SET(sys.overloaded, below(2));
#ifdef BALANCE
	change_task(&task);
	if (!below(4))
		change_mask(&mask);
	lb.now = now;
	lb.cost += below(5000);
	lb.moved = below(3);
	copy(&lb, sizeof(lb));
#else
	static const u32 flags[] = { WF_TTWU, WF_TTWU, WF_TTWU | WF_SYNC, WF_FORK, WF_EXEC, WF_TTWU | WF_CURRENT_CPU };

	change_task(&task[below(2)]);
	if (!below(4))
		change_mask(&cpus);
	wakeup.this_cpu = below(sys.nr_cpus);
	wakeup.prev_cpu = below(sys.nr_cpus);
	wakeup.task_cpu = wakeup.prev_cpu;
	wakeup.wake_flags = flags[below(6)];
	wakeup.in_task = below(2);
	wakeup.random = next_random();
	wakeup.now = now;
	copy(&wakeup, sizeof(wakeup));
#endif
}

static u64 compared;

/* True if both sides have the same value of a part of the state. */
static int same(const char *what, void *part, size_t size)
{
	for (size_t i = 0; i < NR_VARIABLES; i++) {
		ptrdiff_t offset = (char *)part - (char *)variables[i].native;

		if (offset < 0 || (size_t)offset >= variables[i].size)
			continue;
		compared += size;
		for (size_t at = 0; at < size; at++) {
			if (((char *)part)[at] == variables[i].bpf[offset + at])
				continue;
			printf("%s differs from byte %zu of %s + %td on\n", what, at, variables[i].name, offset);
			return 0;
		}
	}
	return 1;
}

/* What the policy may have written; all of the state now and then. */
static int same_state(const char *what, u64 call)
{
	/* but not the features, which it only reads */
	char *after = (char *)sys.tunable, *end = (char *)(&sys + 1);

	if (!same(what, &sys, offsetof(struct cw_sys, features)))
		return 0;
	if (call % 1024 == 0) {
		if (!same(what, after, end - after))
			return 0;
	} else if (!same(what, sys.cpu, sys.nr_cpus * sizeof(sys.cpu[0])) ||
		   !same(what, sys.cpu_sd, sys.nr_cpus * sizeof(sys.cpu_sd[0])) ||
		   !same(what, sys.llc, sys.nr_llcs * sizeof(sys.llc[0]))) {
		return 0;
	}
	for (size_t i = 1; i < NR_VARIABLES; i++) {
		if (!same(what, variables[i].native, variables[i].size))
			return 0;
	}
	return 1;
}

static struct program *choose(u64 call)
{
#ifdef BALANCE
	/* a balance goes through its steps */
	static u32 steps;

	(void)call;
	if (!steps) {
		steps = 1 + below(40);
		return &programs[below(2)];
	}
	steps--;
	return &programs[below(4) ? 2 : 3 + below(4)];
#else
	/* placements first of all */
	return &programs[call % 2 ? 0 : below(NR_PROGRAMS)];
#endif
}

/* Calls a program on both sides. False if they do not agree. */
static int call_both(struct program *program, u64 call)
{
	struct cw_balance ask = {
		.now = now,
		.this_cpu = below(sys.nr_cpus),
		.idle = below(3),
		.flags = next_random() & 1,
		.src_cpu = below(sys.nr_cpus),
		.dst_cpu = below(sys.nr_cpus),
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int native;

	if (program->asks) {
		opts.ctx_in = &ask;
		opts.ctx_size_in = sizeof(ask);
	}
	if (bpf_prog_test_run_opts(program->fd, &opts))
		fail(program->name);
	native = program->native(&ask);
	program->calls++;
	if (native != (int)opts.retval) {
		printf("%s returns %d, in BPF %d\n", program->name, native, (int)opts.retval);
		return 0;
	}
	return same_state(program->name, call);
}

int main(int argc, char **argv)
{
	u64 calls, of_state, done = 0, states = 0;
	int feature;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: states N | diff OBJECT CALLS-PER-STATE SEED [FEATURE]\n");
		return 2;
	}
	of_state = strtoull(argv[2], NULL, 10);
	random_state = strtoull(argv[3], NULL, 10);
	feature = argc > 4 ? feature_of(argv[4]) : -1;
	load(argv[1]);
	while (fread(&sys, sizeof(sys), 1, stdin) == 1) {
		for (size_t i = 1; i < NR_VARIABLES; i++)
			memset(variables[i].native, 0, variables[i].size);
		now = 10000000000ull;
#ifdef BALANCE
		struct cw_task *tasks = &task;
		const u32 nr_tasks = 1;

		change_mask(&mask);
#else
		struct cw_task *tasks = task;
		const u32 nr_tasks = 2;

		process_init(&sys, &process, now);
		change_mask(&cpus);
#endif
		for (u32 i = 0; i < nr_tasks; i++) {
			tasks[i].weight = CW_NICE_0_WEIGHT;
			tasks[i].queued.cpu = -1;
			track_init_task(&tasks[i], 0);
		}
		for (size_t i = 0; i < NR_VARIABLES; i++)
			memcpy(variables[i].bpf, variables[i].native, variables[i].size);
		if (feature >= 0)
			((struct cw_sys *)variables[0].bpf)->features[feature / 64] ^= 1ull << feature % 64;
		for (calls = 1; calls <= of_state; calls++, done++) {
			change();
			if (call_both(choose(calls), calls))
				continue;
			printf("call %llu of state %llu, seed %s\n", calls, states, argv[3]);
			return 1;
		}
		states++;
	}
	for (size_t i = 0; i < NR_PROGRAMS; i++)
		printf("%-18s %10llu calls\n", programs[i].name, programs[i].calls);
	printf("%llu calls on %llu machines, %llu MB compared: no difference\n", done, states, compared >> 20);
	return states ? 0 : 2;
}
