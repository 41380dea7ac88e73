"""Symbolic differentiation: a formula in, the formula of its derivative out.

It is here to be compared with. Formulas grow with every product and every chain: the derivative of
f1 f2 ... fn has n terms of n factors, of which automatic differentiation computes each once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from chainrule.ops.creation.patterns import full_like
from chainrule.ops.elementwise import functions
from chainrule.tensor import Tensor

__all__ = ["Formula", "symbolic_derivative"]

# The derivative of each function, as a formula of its argument u.
RULES = {
    "sin": "cos(u)",
    "cos": "-sin(u)",
    "exp": "exp(u)",
    "log": "1 / u",
    "sqrt": "1 / (2 * sqrt(u))",
    "tanh": "1 - tanh(u) ** 2",
    "sigmoid": "sigmoid(u) * (1 - sigmoid(u))",
}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


@dataclass(frozen=True)
class Formula:
    """An expression of one variable, which may be evaluated for tensors; prints as it is written.

    ``operations`` is how many signs and functions there are in it.
    """

    text: str
    variable: str = "x"

    @property
    def operations(self) -> int:
        """How many operations the formula has."""
        kinds = (ast.BinOp, ast.UnaryOp, ast.Call)
        return sum(isinstance(node, kinds) for node in ast.walk(_parsed(self.text, self.variable)))

    def __call__(self, x: Tensor) -> Tensor:
        code = compile(ast.Expression(_parsed(self.text, self.variable)), "formula", "eval")
        names = {name: getattr(functions, name) for name in RULES}
        # Only names, numbers, signs and functions of the table are in it: `_parsed` has looked.
        value = eval(code, {"__builtins__": {}}, {**names, self.variable: x})
        return value if isinstance(value, Tensor) else full_like(x, value)

    def __str__(self) -> str:
        return self.text


def symbolic_derivative(formula: str | Formula, variable: str = "x") -> Formula:
    """The derivative of a formula, by the rules of calculus on its text.

    Formulas have +, -, *, /, ** with a number above, and sin, cos, exp, log, sqrt, tanh, sigmoid.

    >>> from chainrule.inspect import textbook
    >>> print(textbook.symbolic_derivative("x * sin(x)"))
    sin(x) + x * cos(x)
    >>> print(textbook.symbolic_derivative("exp(-x ** 2)"))
    exp(-x ** 2) * -(2 * x)
    """
    if isinstance(formula, Formula):
        return symbolic_derivative(formula.text, formula.variable)
    found = _derivative(_parsed(formula, variable), variable)
    return Formula(ast.unparse(ast.fix_missing_locations(found)), variable)


def _parsed(text: str, variable: str) -> ast.expr:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"symbolic_derivative: {text!r} is no formula: {error.msg}") from None
    _check(tree, variable, text)
    return tree


def _check(node: ast.expr, variable: str, text: str) -> None:
    """Refuses what is not in the language of formulas."""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        if isinstance(node.op, ast.Pow) and not _is_number(node.right):
            raise ValueError(
                f"symbolic_derivative: the exponent in {ast.unparse(node)!r} must be a number; "
                "write exp(v * log(u)) for u ** v"
            )
        _check(node.left, variable, text)
        _check(node.right, variable, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, variable, text)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RULES:
        if len(node.args) != 1 or node.keywords:
            raise ValueError(f"symbolic_derivative: {node.func.id} takes one argument in {text!r}")
        _check(node.args[0], variable, text)
    elif not _is_number(node) and not (isinstance(node, ast.Name) and node.id == variable):
        raise ValueError(
            f"symbolic_derivative: {ast.unparse(node)!r} in {text!r} is neither {variable!r}, nor "
            f"a number, a sign or one of {', '.join(RULES)}"
        )


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _made(text: str, **parts: ast.expr) -> ast.expr:
    """An expression with parts put in for its names."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    found: ast.expr = Put().visit(ast.parse(text, mode="eval").body)
    return found


def _number(node: ast.expr) -> float | None:
    return node.value if isinstance(node, ast.Constant) else None  # type: ignore[return-value]


def _derivative(node: ast.expr, variable: str) -> ast.expr:
    """One rule for each form: sum, product, quotient, power, chain."""
    if isinstance(node, ast.Name):
        return ast.Constant(1)
    if _is_number(node):
        return ast.Constant(0)
    if isinstance(node, ast.UnaryOp):
        inner = _derivative(node.operand, variable)
        return inner if _number(inner) == 0 else _made("-u", u=inner)
    if isinstance(node, ast.Call):
        inner = _derivative(node.args[0], variable)
        name = node.func.id  # type: ignore[attr-defined]
        return _times(_made(RULES[name], u=node.args[0]), inner)
    if not isinstance(node, ast.BinOp):
        raise TypeError(f"symbolic_derivative: no rule for {type(node).__name__}")
    u, v = node.left, node.right
    du, dv = _derivative(u, variable), _derivative(v, variable)
    if isinstance(node.op, ast.Mult):
        return _plus(_times(du, v), _times(u, dv))
    if isinstance(node.op, ast.Div):
        top = _minus(_times(du, v), _times(u, dv))
        return _made("t / v ** 2", t=top, v=v) if _number(dv) != 0 else _made("t / v", t=du, v=v)
    if isinstance(node.op, ast.Pow):
        n = ast.literal_eval(v)
        lower = u if n == 2 else _made("u ** n", u=u, n=ast.Constant(n - 1))
        return _times(_times(ast.Constant(n), lower), du)
    return _plus(du, dv) if isinstance(node.op, ast.Add) else _minus(du, dv)


def _plus(u: ast.expr, v: ast.expr) -> ast.expr:
    if _number(u) == 0:
        return v
    return u if _number(v) == 0 else _made("u + v", u=u, v=v)


def _minus(u: ast.expr, v: ast.expr) -> ast.expr:
    if _number(v) == 0:
        return u
    return _made("-v", v=v) if _number(u) == 0 else _made("u - v", u=u, v=v)


def _times(u: ast.expr, v: ast.expr) -> ast.expr:
    if 0 in (_number(u), _number(v)):
        return ast.Constant(0)
    if _number(u) == 1:
        return v
    return u if _number(v) == 1 else _made("u * v", u=u, v=v)
