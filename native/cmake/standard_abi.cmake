# The target `earlybird_abi`: the library for programs of the MPI standard's own ABI (MPI 5.0, chapter 20), which are linked
# with libmpi_abi.so of any MPI. Compiled like `earlybird` except for the handles and constants, and with all calls of MPI 5.0.
if(NOT HAS_STANDARD_ABI)
  return()
endif()
get_target_property(sources earlybird SOURCES)
add_library(earlybird_abi SHARED ${sources})
foreach(property IN ITEMS COMPILE_OPTIONS C_EXTENSIONS INCLUDE_DIRECTORIES LINK_LIBRARIES LINK_OPTIONS)
  get_target_property(value earlybird ${property})
  set_target_properties(earlybird_abi PROPERTIES ${property} "${value}")
endforeach()
target_compile_definitions(earlybird_abi PRIVATE MPI_ABI _GNU_SOURCE EB_PARTITIONED_COUNT=MPI_Count EB_HAS_TYPE_ENVELOPE_C
  EB_HAS_SESSIONS EB_HAS_IDUP_WITH_INFO EB_HAS_REQUEST_GET_STATUS_ALL)
install(TARGETS earlybird_abi LIBRARY DESTINATION lib)
