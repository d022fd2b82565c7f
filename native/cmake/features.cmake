# Probes what this MPI declares and links. Version numbers are not reliable: Open MPI 5.0 reports MPI 3.1 but has MPI-4 calls.
include(CheckCSourceCompiles)

set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
function(probe name source)
  check_c_source_compiles("#include <mpi.h>\nint main(void) { ${source} return 0; }" ${name})
endfunction()

# The count of a partitioned call is MPI_Count in the standard and int in some headers; the type of a
# pointer to the function distinguishes them.
probe(HAS_PARTITIONED "MPI_Request r; MPI_Psend_init(0, 1, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &r);")
probe(PARTITIONED_COUNT_IS_MPI_COUNT
  "_Static_assert(_Generic(&MPI_Psend_init, int (*)(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *): 1, default: 0), \"\");")
probe(HAS_LARGE_COUNT "MPI_Request r; MPI_Isend_c(0, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &r);")
probe(HAS_ISENDRECV
  "MPI_Request r; MPI_Isendrecv(0, 0, MPI_BYTE, 0, 0, 0, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &r);")
probe(HAS_PERSISTENT_COLLECTIVES
  "MPI_Request r; MPI_Bcast_init(0, 0, MPI_BYTE, 0, MPI_COMM_SELF, MPI_INFO_NULL, &r);")
probe(HAS_BUFFER_FLUSH "MPI_Buffer_flush(); MPI_Comm_flush_buffer(MPI_COMM_SELF);")
probe(HAS_SESSIONS "MPI_Session s; MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);")
probe(HAS_STREAMS "MPIX_Stream s; MPI_Comm c; MPIX_Stream_create(MPI_INFO_NULL, &s); MPIX_Stream_comm_create(MPI_COMM_SELF, s, &c);")

# MPI_T; SMPI has none.
probe(HAS_TOOL_INTERFACE "int p; MPI_T_init_thread(MPI_THREAD_SINGLE, &p);")
# SimGrid's SMPI: ranks share a process, and time is that of a simulated machine.
probe(IS_SIMULATED "smpi_execute_flops(0);")
probe(HAS_IDUP_WITH_INFO "MPI_Request r; MPI_Comm c; MPI_Comm_idup_with_info(MPI_COMM_SELF, MPI_INFO_NULL, &c, &r);")
probe(HAS_TYPE_ENVELOPE_C "MPI_Count a, b, c, d; int e; MPI_Type_get_envelope_c(MPI_BYTE, &a, &b, &c, &d, &e);")
probe(HAS_REQUEST_GET_STATUS_ALL "int f; MPI_Request_get_status_all(0, 0, &f, MPI_STATUSES_IGNORE);")
# The MPI standard's own ABI in the version of MPI 5.0, which <mpi.h> of MPICH and Intel MPI has under -DMPI_ABI.
set(CMAKE_REQUIRED_DEFINITIONS -DMPI_ABI)
probe(HAS_STANDARD_ABI
  "_Static_assert(MPI_ABI_VERSION == 1 && _Generic(MPI_COMM_WORLD, struct MPI_ABI_Comm *: 1, default: 0), \"\");")
unset(CMAKE_REQUIRED_DEFINITIONS)
if(HAS_PARTITIONED AND NOT PARTITIONED_COUNT_IS_MPI_COUNT)
  set(EB_PARTITIONED_COUNT int)
else()
  set(EB_PARTITIONED_COUNT MPI_Count)
endif()

set(features "")
foreach(name IN ITEMS HAS_PARTITIONED PARTITIONED_COUNT_IS_MPI_COUNT HAS_LARGE_COUNT HAS_PERSISTENT_COLLECTIVES HAS_SESSIONS
        HAS_STREAMS HAS_TOOL_INTERFACE IS_SIMULATED)
  string(TOLOWER ${name} key)
  if(${name})
    list(APPEND features "\"${key}\": true")
  else()
    list(APPEND features "\"${key}\": false")
  endif()
endforeach()
list(JOIN features ", " features)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/features.json "{${features}}\n")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/features.json DESTINATION .)
