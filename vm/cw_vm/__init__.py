# SPDX-License-Identifier: GPL-2.0-only
"""Boots real Linux kernels on chosen machines under QEMU; `vm/README.md` describes how."""
