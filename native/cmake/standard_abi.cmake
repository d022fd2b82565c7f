# The targets `earlybird_abi` and `earlybird_recorder_abi`: the libraries for programs of the MPI standard's own ABI (MPI 5.0,
# chapter 20), which are linked with libmpi_abi.so of any MPI. Compiled like the others except for the handles and constants,
# and with all calls of MPI 5.0.
if(NOT HAS_STANDARD_ABI)
  return()
endif()
function(add_abi_library like)
  get_target_property(sources ${like} SOURCES)
  add_library(${like}_abi SHARED ${sources})
  foreach(property IN ITEMS COMPILE_OPTIONS C_EXTENSIONS INCLUDE_DIRECTORIES LINK_LIBRARIES LINK_OPTIONS)
    get_target_property(value ${like} ${property})
    set_target_properties(${like}_abi PROPERTIES ${property} "${value}")
  endforeach()
  install(TARGETS ${like}_abi LIBRARY DESTINATION lib)
endfunction()

add_abi_library(earlybird)
target_compile_definitions(earlybird_abi PRIVATE MPI_ABI _GNU_SOURCE EB_PARTITIONED_COUNT=MPI_Count EB_HAS_TYPE_ENVELOPE_C
  EB_HAS_SESSIONS EB_HAS_IDUP_WITH_INFO EB_HAS_REQUEST_GET_STATUS_ALL)
add_abi_library(earlybird_recorder)
target_compile_definitions(earlybird_recorder_abi PRIVATE MPI_ABI _GNU_SOURCE EB_PARTITIONED_COUNT=MPI_Count EB_HAS_LARGE_COUNT
  EB_HAS_ISENDRECV EB_HAS_PERSISTENT_COLLECTIVES EB_HAS_SESSIONS EB_HAS_IDUP_WITH_INFO EB_HAS_BUFFER_FLUSH
  EB_HAS_REQUEST_GET_STATUS_ALL)
