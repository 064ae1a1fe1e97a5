# Sources that build the graphs of the ready models. Nothing is trained with them: optimising kernels would double the time
# they take to compile, and gain nothing.
set(mmr_graph_sources gpt.cpp llama.cpp t5.cpp)
list(TRANSFORM mmr_graph_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set_source_files_properties(${mmr_graph_sources} PROPERTIES COMPILE_OPTIONS -O0)
