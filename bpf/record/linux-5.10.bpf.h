/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs have to do differently on 5.10: its BTF has no types for per-CPU
 * variables, and it has no bpf_loop().
 */
#ifndef LINUX_5_10_BPF_H
#define LINUX_5_10_BPF_H

extern const void runqueues __ksym;
extern const void sd_llc_shared __ksym;
extern const void sd_asym_cpucapacity __ksym;
extern const void sd_llc __ksym;
extern const void sd_llc_id __ksym;
extern const void __preempt_count __ksym __weak;
extern const void __per_cpu_offset __ksym;

static void *per_cpu_address(const void *variable, u32 cpu)
{
	u64 offset = 0;

	bpf_probe_read_kernel(&offset, sizeof(offset), (const u64 *)&__per_cpu_offset + cpu);
	return (void *)variable + offset;
}

static void *per_cpu_pointer_at(const void *variable, u32 cpu)
{
	void *value = NULL;

	bpf_probe_read_kernel(&value, sizeof(value), per_cpu_address(variable, cpu));
	return value;
}

static __attribute__((unused)) u32 this_cpu_preempt_count(void)
{
	u32 count = 0;

	bpf_probe_read_kernel(&count, sizeof(count),
			      per_cpu_address(&__preempt_count, bpf_get_smp_processor_id()));
	return count;
}

#define per_cpu(variable, cpu) per_cpu_address(&(variable), cpu)
#define per_cpu_read(pointer, member) BPF_CORE_READ(pointer, member)
/* The pointer must not be one to const, or the value would count as known to be 0. */
#define per_cpu_value(pointer)                                                                     \
	({                                                                                         \
		typeof(*(pointer)) value = 0;                                                      \
		bpf_probe_read_kernel((void *)&value, sizeof(value), pointer);                     \
		value;                                                                             \
	})
#define per_cpu_pointer(variable, cpu) per_cpu_pointer_at(&(variable), cpu)
#define for_each_index(nr, step, walk)                                                             \
	for (u32 index = 0; index < LINUX_5_10_MAX_CPUS && index < (nr); index++)                  \
		if (step(index, walk))                                                             \
			break
#define repeat(times, step, walk)                                                                  \
	for (u32 index = 0; index < (times); index++)                                              \
		if (step(index, walk))                                                             \
			break

#endif /* LINUX_5_10_BPF_H */
