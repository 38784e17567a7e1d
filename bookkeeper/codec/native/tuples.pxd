# The tuples of tuples.h, for compiled codecs.
from cpython.object cimport PyObject


cdef extern from "tuples.h":
    object bk_tuple_of(object kind, Py_ssize_t n)
    void bk_tuple_put(object made, Py_ssize_t i, PyObject *value)
    void bk_tuple_filled(object made)
