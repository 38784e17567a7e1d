/* Named tuples that are filled field by field, as CPython's own tuple.__new__ fills a subclass: without a tuple, a list
 * or a call besides. The collector does not see one before it is whole. */
#ifndef BK_TUPLES_H
#define BK_TUPLES_H

#include <Python.h>

/* A tuple of this kind with n empty places. Fill each, then call bk_tuple_filled; or drop it. */
static PyObject *bk_tuple_of(PyObject *kind, Py_ssize_t n)
{
    PyTypeObject *type = (PyTypeObject *)kind;
    if (!PyType_Check(kind) || !PyType_IsSubtype(type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a class of named tuples is needed");
        return NULL;
    }
    PyObject *made = type->tp_alloc(type, n);
    if (made != NULL && PyObject_GC_IsTracked(made))
        PyObject_GC_UnTrack(made);
    return made;
}

/* Put a value, of which one reference is given away, into an empty place. */
static inline void bk_tuple_put(PyObject *tuple, Py_ssize_t i, PyObject *value)
{
    PyTuple_SET_ITEM(tuple, i, value);
}

static inline void bk_tuple_filled(PyObject *tuple)
{
    PyObject_GC_Track(tuple);
}

#endif
