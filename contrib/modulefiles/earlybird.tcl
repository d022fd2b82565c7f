#%Module1.0
# Environment Modules file of the command earlybird and of libearlybird for one MPI; docs/site.md says what is below
# `prefix`.
set prefix /opt/earlybird

proc ModulesHelp {} {
    puts stderr {earlybird: measures, records, predicts and speeds up MPI communication; `earlybird doctor` lists the MPIs.
libearlybird: MPI-4 partitioned communication over the MPI that it was built for.

  mpiexec -n 2 env LD_PRELOAD=$LIBEARLYBIRD ./app      MPICH, Intel MPI, Open MPI
  srun -n 2 env LD_PRELOAD=$LIBEARLYBIRD ./app         any other launcher

EARLYBIRD_OFF=1 disables it for a job; EARLYBIRD_STATS=1 prints a table of its transfers.}
}
module-whatis {Measures MPI; MPI-4 partitioned communication over any MPI}

# LD_PRELOAD is not set, because it would also load the library into shells, daemons and launchers.
setenv LIBEARLYBIRD $prefix/lib/libearlybird.so
prepend-path PATH $prefix/bin
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
