"""Computes a graph of ONNX node by node. Nodes that hold graphs run them here, as Python decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import fusewire as fw
from tests.conformance.onnx_ops import OPS


def outputs_of(graph: onnx.GraphProto, inputs: Any, around: Mapping[str, Any] | None = None) -> list[Any]:
    """Returns the outputs. `around` has the values of the graph that this one is in, by name."""
    values: dict[str, Any] = {"": None, **(around or {})}
    values |= {each.name: fw.asarray(numpy_helper.to_array(each)) for each in graph.initializer}
    given = {each.name for each in graph.initializer}
    names = [each.name for each in graph.input if each.name not in given]
    values |= {name: _as_array(value) for name, value in zip(names, inputs, strict=True)}
    for node in graph.node:
        results = _computed(node, [values[name] for name in node.input], values)
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


HOLDING_GRAPHS: dict[str, Callable[..., list[Any]]] = {"If": _chosen, "Loop": _looped, "Scan": _scanned}


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _constant(attributes: dict[str, Any]) -> Any:
    (kind, value), *_ = attributes.items()
    if kind == "value":
        return fw.asarray(numpy_helper.to_array(value))
    return fw.asarray(np.asarray(value, np.float32 if "float" in kind else np.int64))
