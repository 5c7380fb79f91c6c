"""A server of llama.cpp for one GGUF file: prints its address, and ends with its standard input.

    python llama_cpp_server.py FILE

Keys and values are in float32, as transformers has them; answers are computed by one thread.
"""

import sys

import xllamacpp

settings = xllamacpp.CommonParams()
settings.model.path = sys.argv[1]
settings.n_ctx = 4096
settings.cpuparams.n_threads = 1
settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
server = xllamacpp.Server(settings)
sys.stdout.write(f"{server.listening_address}\n")
sys.stdout.flush()
sys.stdin.read()
