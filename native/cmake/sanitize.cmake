# -DEARLYBIRD_SANITIZE=address,undefined or =thread instruments all targets, but not the MPI.
set(EARLYBIRD_SANITIZE "" CACHE STRING "Sanitizers of the compiler, for example address,undefined or thread")
if(EARLYBIRD_SANITIZE)
  add_compile_options(-fsanitize=${EARLYBIRD_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${EARLYBIRD_SANITIZE})
endif()
