-- Lmod module of the command earlybird and of libearlybird for one MPI; docs/site.md says what is below `prefix`.
local prefix = "/opt/earlybird"

help([[
earlybird: measures, records, predicts and speeds up MPI communication; `earlybird doctor` lists the MPIs.
libearlybird: MPI-4 partitioned communication over the MPI that it was built for.

  mpiexec -n 2 env LD_PRELOAD=$LIBEARLYBIRD ./app      MPICH, Intel MPI, Open MPI
  srun -n 2 env LD_PRELOAD=$LIBEARLYBIRD ./app         any other launcher

EARLYBIRD_OFF=1 disables it for a job; EARLYBIRD_STATS=1 prints a table of its transfers.
]])
whatis("Name: earlybird")
whatis("Category: tools, library, mpi")
whatis("Description: MPI-4 partitioned communication over any MPI")

-- LD_PRELOAD is not set, because it would also load the library into shells, daemons and launchers.
setenv("LIBEARLYBIRD", pathJoin(prefix, "lib", "libearlybird.so"))
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib", "pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
