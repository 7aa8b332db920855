# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.packages.stream.package import Stream as BuiltinStream

from spack.package import *


class Stream(BuiltinStream):
    """STREAM: the bandwidth of memory.

    The stock recipe, pinned to a commit: it takes what its branch holds on the day."""

    version("5.10", commit="6703f7504a38a8da96b353cadafa64d3c2d7a2d3")
