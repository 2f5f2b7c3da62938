# Names of keys in brackets, which equal keys share.

cdef inline object named_part(object part):
    """Returns a part of a key as its name holds it, or `slice` for a part that has no name."""
    if type(part) is int or part is None or part is Ellipsis:
        return part
    return int(part) if isinstance(part, integer) else slice


def name_of_key(key):
    """Returns the name of a key of integers, slices, `...` and None, which equal keys share, or None for other keys.

    The integers may be NumPy's.
    """
    cdef tuple items = key if type(key) is tuple else (key,)
    cdef list name = []
    for item in items:
        if type(item) is slice:
            start, stop, step = named_part(item.start), named_part(item.stop), named_part(item.step)
            if start is slice or stop is slice or step is slice:
                return None
            name.append(start)
            name.append(stop)
            name.append(step)
            name.append(slice)
            continue
        part = named_part(item)
        if part is slice:
            return None
        name.append(part)
    return tuple(name)
