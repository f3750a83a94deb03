/* SPDX-License-Identifier: GPL-2.0-only */
/* The compiled BPF programs, as bytes of the recorder. */
	.section .rodata
	.balign 8
	.global capture_bpf_object
	.global capture_bpf_object_end
capture_bpf_object:
	.incbin CAPTURE_BPF_OBJECT
capture_bpf_object_end:
	.byte 0
	.balign 8
	.global capture_linux_5_10_object
	.global capture_linux_5_10_object_end
capture_linux_5_10_object:
	.incbin CAPTURE_LINUX_5_10_OBJECT
capture_linux_5_10_object_end:
	.byte 0
	.balign 8
	.global workload_bpf_object
	.global workload_bpf_object_end
workload_bpf_object:
	.incbin WORKLOAD_BPF_OBJECT
workload_bpf_object_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
