#%Module1.0
# Environment Modules file of libearlybird. `prefix` is the PREFIX of `make install PREFIX=... MPI=...`, for one MPI.
set prefix /opt/earlybird

proc ModulesHelp {} {
    puts stderr {libearlybird: MPI-4 partitioned communication over the MPI that it was built for.

  mpiexec -n 2 env LD_PRELOAD=$LIBEARLYBIRD ./app      MPICH, Intel MPI, Open MPI
  srun -n 2 env LD_PRELOAD=$LIBEARLYBIRD ./app         any other launcher

EARLYBIRD_OFF=1 disables it for a job; EARLYBIRD_STATS=1 prints a table of its transfers.}
}
module-whatis {MPI-4 partitioned communication over any MPI}

# LD_PRELOAD is not set, because it would also load the library into shells, daemons and launchers.
setenv LIBEARLYBIRD $prefix/lib/libearlybird.so
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
