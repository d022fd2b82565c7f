"""Spack package of libearlybird, built from the checkout that contains this package repository."""

from pathlib import Path

from spack.package import *

try:  # since Spack 1.0, build systems are part of the package repository
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Earlybird(CMakePackage):
    """MPI-4 partitioned communication over any MPI from 3.1 on, to be preloaded or linked."""

    homepage = "file://" + str(Path(__file__).resolve().parents[4])
    git = homepage
    license("BSD-3-Clause")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi@3.1:")

    root_cmakelists_dir = "native"
    # The other targets of native/ are Earlybird's benchmark kernels.
    build_targets = ["earlybird"]

    def cmake_args(self):
        mpi = self.spec["mpi"]
        return [
            self.define("MPI_C_COMPILER", mpi.mpicc),
            self.define("EARLYBIRD_VERSION", str(self.spec.version)),
            self.define("EARLYBIRD_MPI", f"{mpi.name} {mpi.version}"),
        ]

    def install(self, spec, prefix):
        for folder in (prefix.lib.pkgconfig, prefix.lib.cmake.Earlybird, prefix.include):
            mkdirp(folder)
        with working_dir(self.build_directory):
            install("libearlybird.so*", prefix.lib)
            install("earlybird.pc", prefix.lib.pkgconfig)
            install("Earlybird*.cmake", prefix.lib.cmake.Earlybird)
        for header in ("earlybird.h", "earlybird_f08.f90"):
            install(join_path(self.stage.source_path, "native", "include", header), prefix.include)

    def setup_run_environment(self, env):
        # LD_PRELOAD is not set, because it would also load the library into shells, daemons and launchers.
        env.set("LIBEARLYBIRD", join_path(self.prefix.lib, "libearlybird.so"))
