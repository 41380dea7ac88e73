"""The OpenAPI document of a service: what can be sent, and what comes back."""

from __future__ import annotations

from typing import Any

from chainrule.serve.limits import Limits
from chainrule.serve.pictures import IMAGE, takes_images
from chainrule.serve.rows import example, has_intervals, wanted
from chainrule.train import FittedNetwork
from chainrule.version import __version__

__all__ = ["openapi", "summary_of"]

REFUSED = {
    "400": "the body is not JSON, or a parameter is wrong",
    "408": "the body did not arrive in time",
    "413": "the body, or the number of rows, is over the limit",
    "415": "the body is not said to be what is taken",
    "422": "rows are wrong: each mistake with its row, column and rule",
    "429": "too many rows or bytes wait already; Retry-After says when to try again",
    "503": "the service is stopping, or the answer took too long",
}


def summary_of(network: FittedNetwork) -> str:
    """What the network does, in a sentence."""
    kind = f"{len(network.about['classes'])} classes" if network.about["classes"] else network.task
    if takes_images(network):
        return f"Predicts {network.about['target']} ({kind}) from images."
    return f"Predicts {network.about['target']} ({kind}) from {len(network.columns)} columns."


def openapi(network: FittedNetwork, limits: Limits) -> dict[str, Any]:
    """The document, version 3.1."""
    row = {"$ref": "#/components/schemas/Row"}
    body = {
        "oneOf": [
            row,
            {"type": "array", "items": row, "minItems": 1, "maxItems": limits.max_rows},
        ]
    }
    content = _json(body)
    if takes_images(network):
        content["image/*"] = {"schema": {"type": "string", "format": "binary"}}
    refused = {
        code: {"description": text, "content": _json({"$ref": "#/components/schemas/Refusal"})}
        for code, text in REFUSED.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"chainrule serve: {network.about['target']}",
            "version": __version__,
            "description": summary_of(network),
        },
        "paths": {
            "/predict": {
                "post": {
                    "summary": "Answers for one row or a list of rows",
                    "operationId": "predict",
                    "parameters": _parameters(network),
                    "requestBody": {"required": True, "content": content},
                    "responses": {
                        "200": {
                            "description": "an answer for each row, in order",
                            "content": _json({"$ref": "#/components/schemas/Answers"}),
                        },
                        **refused,
                    },
                }
            },
            "/health": {
                "get": {
                    "summary": "Whether the service answers, and how much it has done",
                    "operationId": "health",
                    "responses": {"200": {"description": "it does", "content": _json({})}},
                }
            },
        },
        "components": {"schemas": _schemas(network)},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameters(network: FittedNetwork) -> list[dict[str, Any]]:
    if network.target.classes:
        text = "whether the probability of each class is wanted, too"
        return [_parameter("probabilities", {"type": "boolean"}, text)]
    if has_intervals(network):
        between = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
        text = "the probability with which an interval holds the truth, like 0.9"
        return [_parameter("interval", between, text)]
    return []


def _parameter(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": text}


def _schemas(network: FittedNetwork) -> dict[str, Any]:
    numbers, others = ["number", "string", "null"], ["string", "number", "boolean", "null"]
    columns = {
        name: {
            "type": "string" if kind.kind == IMAGE else numbers if kind.is_number else others,
            "description": kind.rule,
        }
        for name, kind in wanted(network).items()
    }
    answer: dict[str, Any] = {"prediction": {}}
    if network.target.classes:
        answer["probabilities"] = {"type": "object", "additionalProperties": {"type": "number"}}
    if has_intervals(network):
        answer["interval"] = {"type": "array", "items": {"type": "number"}}
    texts = {"type": "array", "items": {"type": "string"}}
    mistake = {
        "type": "object",
        "properties": {
            "row": {"type": ["integer", "null"]},
            "column": {"type": ["string", "null"]},
            "rule": {"type": "string"},
        },
    }
    return {
        "Row": {
            "type": "object",
            "properties": columns,
            "required": list(columns),
            "examples": [example(network)],
        },
        "Answers": {
            "type": "object",
            "properties": {
                "answers": {"type": "array", "items": {"type": "object", "properties": answer}},
                "ignored": {**texts, "description": "names that the network does not know"},
            },
            "required": ["answers", "ignored"],
        },
        "Refusal": {
            "type": "object",
            "properties": {
                "error": {"type": "string"},
                "mistakes": {"type": "array", "items": mistake},
            },
            "required": ["error"],
        },
    }
