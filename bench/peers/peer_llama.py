# SPDX-License-Identifier: Apache-2.0
"""llama.cpp through its Python package. It quantises activations to 8 bits on the way where parameters are in few bits, so
its logits are near ours, not equal to them."""
import ctypes

import llama_cpp
import numpy

version = "llama.cpp (llama-cpp-python " + llama_cpp.__version__ + ")"
CHUNK = 512  # tokens that are read at a time


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def be_quiet(level, text, data):
    pass


llama_cpp.llama_log_set(be_quiet, None)


class Decoder:
    """A model of a GGUF file on one text."""

    def __init__(self, path, ids, context, threads):
        self.ids, self.context = ids.astype(numpy.int32), context
        self.model = llama_cpp.Llama(str(path), n_ctx=len(ids) + 8, n_batch=CHUNK, n_ubatch=CHUNK, n_threads=threads,
                                     n_threads_batch=threads, logits_all=False, verbose=False, n_gpu_layers=0)
        self.batch = llama_cpp.llama_batch_init(CHUNK, 0, 1)
        self.read(self.ids[:context], 0)

    def read(self, ids, first):
        """The tokens ids, which stand at places first, first + 1, ...; logits of the last are made."""
        for begin in range(0, len(ids), CHUNK):
            chunk = ids[begin:begin + CHUNK]
            self.batch.n_tokens = len(chunk)
            for i, token in enumerate(chunk.tolist()):
                self.batch.token[i], self.batch.pos[i] = token, first + begin + i
                self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, 0
                self.batch.logits[i] = begin + i + 1 == len(ids)
            if llama_cpp.llama_decode(self.model.ctx, self.batch) != 0:
                raise SystemExit("llama.cpp cannot read the tokens")

    def forget(self, first):
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self.model.ctx), 0, first, -1)

    def read_prompt(self):
        self.forget(0)
        self.read(self.ids[:self.context], 0)

    def decode(self):
        self.forget(self.context)
        for place in range(self.context, len(self.ids)):
            self.read(self.ids[place:place + 1], place)

    def logits(self):
        """Behind the last token that was read."""
        pointer = llama_cpp.llama_get_logits_ith(self.model.ctx, -1)
        return numpy.ctypeslib.as_array(pointer, (self.model.n_vocab(),)).copy()
