"""Computes a graph of ONNX node by node. Nodes that hold graphs run them here, as Python decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import fusewire as fw
from tests.conformance.onnx_ops import OPS


def outputs_of(
    graph: onnx.GraphProto,
    inputs: Any,
    around: Mapping[str, Any] | None = None,
    versions: Mapping[str, int] | None = None,
) -> list[Any]:
    """Returns the outputs. `around` has the values of the graph that this one is in, by name.

    `versions` has for each domain of ops its version, where a node of the graph is one of DEFINED.
    """
    values: dict[str, Any] = {"": None, **(around or {})}
    values |= {each.name: fw.asarray(numpy_helper.to_array(each)) for each in graph.initializer}
    known = {each.name for each in graph.initializer}
    names = [each.name for each in graph.input if each.name not in known]
    values |= {name: _as_array(value) for name, value in zip(names, inputs, strict=True)}
    for node in graph.node:
        given = [values[name] for name in node.input]
        if node.op_type in DEFINED:
            results = _by_definition(node, given, versions or {})
        else:
            results = _computed(node, given, values)
        values |= dict(zip(node.output, results, strict=False))  # a node may leave out its last outputs
    return [values[each.name] for each in graph.output]


def kinds_of(graph: onnx.GraphProto) -> set[str]:
    """Returns the kinds of the nodes of a graph, and of the graphs in it."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return {node.op_type for node in graph.node}.union(*map(kinds_of, inner))


def _as_array(value: Any) -> Any:
    return value if isinstance(value, fw.Array) else fw.asarray(np.asarray(value))


def _computed(node: onnx.NodeProto, inputs: list[Any], values: Mapping[str, Any]) -> tuple[Any, ...]:
    attributes = {each.name: _attribute(each) for each in node.attribute}
    if node.op_type == "Constant":
        return (_constant(attributes),)
    if node.op_type in HOLDING_GRAPHS:
        return tuple(HOLDING_GRAPHS[node.op_type](*inputs, around=values, **attributes))
    if node.op_type == "Split":
        attributes["outputs"] = len(node.output)
    result = OPS[node.op_type](*inputs, **attributes)
    return result if isinstance(result, tuple) else (result,)


def _by_definition(node: onnx.NodeProto, inputs: list[Any], versions: Mapping[str, int]) -> tuple[Any, ...]:
    """Computes a node by the nodes by which ONNX defines it, for inputs of these dtypes and shapes."""
    schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
    types = [b"" if each is None else _type_of(each).SerializeToString() for each in inputs]
    written = schema.get_context_dependent_function(node.SerializeToString(), types)
    function = onnx.FunctionProto.FromString(written)
    values: dict[str, Any] = {"": None, **dict.fromkeys(function.input)}
    values |= dict(zip(function.input, inputs, strict=False))
    attributes = {each.name: each for each in [*function.attribute_proto, *node.attribute]}
    for each in function.node:
        results = _computed(_with_attributes(each, attributes), [values[name] for name in each.input], values)
        values |= dict(zip(each.output, results, strict=False))
    return tuple([values.get(name) for name in function.output])  # a definition computes no output that is left out


def _type_of(value: Any) -> onnx.TypeProto:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype.name))
    return helper.make_tensor_type_proto(number, value.shape)


def _with_attributes(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """Returns a node of a definition, with the attributes of the node that is defined in place of their names."""
    found = onnx.NodeProto()
    found.CopyFrom(node)
    del found.attribute[:]
    for each in node.attribute:
        known = attributes.get(each.ref_attr_name) if each.ref_attr_name else each
        if known is not None:
            added = found.attribute.add()
            added.CopyFrom(known)
            added.name = each.name
    return found


def _chosen(condition: Any, *, then_branch: Any, else_branch: Any, around: Mapping[str, Any]) -> list[Any]:
    return outputs_of(then_branch if bool(condition) else else_branch, (), around)


def _looped(limit: Any, condition: Any, *states: Any, body: Any, around: Mapping[str, Any]) -> list[Any]:
    """The body takes the iteration, a condition and the states, and gives a condition, states and outputs."""
    carried, outputs = list(states), []
    i, goes_on = 0, condition is None or bool(condition)
    while goes_on and (limit is None or i < int(limit)):
        first, *results = outputs_of(body, (np.int64(i), np.bool_(goes_on), *carried), around)
        carried, i, goes_on = results[: len(states)], i + 1, bool(first)
        outputs.append(results[len(states) :])
    return [*carried, *map(fw.stack, zip(*outputs, strict=True))]


def _scanned(*inputs: Any, body: Any, num_scan_inputs: int, around: Mapping[str, Any]) -> list[Any]:
    """The body takes the states and an element of each other input, and gives states and elements of the outputs."""
    carried, others = list(inputs[:-num_scan_inputs]), inputs[-num_scan_inputs:]
    outputs = []
    for i in range(others[0].shape[0]):
        results = outputs_of(body, (*carried, *(each[i] for each in others)), around)
        outputs.append(results[len(carried) :])
        carried = results[: len(carried)]
    return [*carried, *map(fw.stack, zip(*outputs, strict=True))]


DEFINED = frozenset(("Attention", "CausalConvWithState", "FlexAttention", "LinearAttention"))
HOLDING_GRAPHS: dict[str, Callable[..., list[Any]]] = {"If": _chosen, "Loop": _looped, "Scan": _scanned}


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _constant(attributes: dict[str, Any]) -> Any:
    (kind, value), *_ = attributes.items()
    if kind == "value":
        return fw.asarray(numpy_helper.to_array(value))
    return fw.asarray(np.asarray(value, np.float32 if "float" in kind else np.int64))
