"""The layout of graphs in layers: rows, orders, places, and that nothing covers anything."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from looking.diagrams import assert_laid_out_well

from chainrule.inspect.structure.blocks import Block, Graph, Line, Link
from chainrule.inspect.structure.layers import in_layers, ranks_of
from chainrule.inspect.structure.layout import layout, settled
from chainrule.inspect.structure.rendering import rendered
from chainrule.inspect.structure.scene import Drawing
from chainrule.inspect.structure.texts import shortened, width_of

DAG = st.integers(2, 14).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 12), min_size=n, max_size=n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n),
    )
)


def edges_of(pairs: Any) -> list[tuple[int, int]]:
    return sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})


def drawn(graph: Graph) -> Drawing:
    made = rendered(graph, "graph", "of blocks")
    return Drawing("graph", made.boxes, made.labels, made.edges, *made.area, made.svg)


@given(DAG)
@settings(max_examples=40, deadline=None)
def test_random_graphs_are_laid_out_well(found: Any) -> None:
    lengths, pairs = found
    blocks = [Block(f"n{i}", [Line("w" * k)], round=k < 3) for i, k in enumerate(lengths)]
    links = [Link(f"n{a}", f"n{b}", f"n{a}", f"n{a}") for a, b in edges_of(pairs)]
    assert_laid_out_well(drawn(Graph(blocks, links)))


@given(DAG, st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_random_graphs_inside_graphs_are_laid_out_well(found: Any, opened: int) -> None:
    lengths, pairs = found
    edges = edges_of(pairs)

    def inner(name: str) -> Graph:
        blocks = [Block(f"{name}.{i}", [Line("w" * k)]) for i, k in enumerate(lengths)]
        links = [Link(f"{name}.{a}", f"{name}.{b}", None, a) for a, b in edges]
        links += [Link(("in", "n0"), f"{name}.{len(lengths) - 1}", None, "entry")]
        links += [Link(f"{name}.0", ("out", "all"), None, None)]
        return Graph(blocks, links, ["n0"], ["all"])

    blocks = [Block(f"n{i}", [Line(f"block {i}")]) for i in range(4)]
    for block in blocks[1:3]:
        block.inner, block.open = inner(block.key), int(block.key[1]) <= opened
    pairs_outside = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]
    links = [Link(f"n{a}", f"n{b}", "all", f"n{a}") for a, b in pairs_outside]
    assert_laid_out_well(drawn(Graph(blocks, links)))


def test_a_fault_in_a_drawing_is_found() -> None:
    blocks = [Block(f"n{i}", [Line("block")]) for i in range(3)]
    links = [Link("n0", "n1", 0, 0), Link("n1", "n2", 0, 0), Link("n0", "n2", 0, 0)]
    drawing = drawn(Graph(blocks, links))
    assert_laid_out_well(drawing)
    long = next(e for e in drawing.edges if (e.source, e.target) == ("block", "block"))
    middle = drawing.boxes[1]
    long.points = [(middle.x + 3, middle.y - 9), (middle.x + 3, middle.y + 99)]
    with pytest.raises(AssertionError, match="runs through"):
        assert_laid_out_well(drawing)
    drawing = drawn(Graph(blocks, links))
    drawing.boxes[1].y = drawing.boxes[0].y + 4
    with pytest.raises(AssertionError, match="covers"):
        assert_laid_out_well(drawing)
    drawing = drawn(Graph(blocks, links))
    drawing.labels[0].x = -500
    with pytest.raises(AssertionError, match="outside"):
        assert_laid_out_well(drawing)


def test_every_edge_points_down_and_sources_stay_close() -> None:
    edges = [("x", "a"), ("a", "b"), ("b", "c"), ("x", "c"), ("weight", "c")]
    ranks = ranks_of(["x", "a", "b", "c", "weight"], edges)
    assert all(ranks[a] < ranks[b] for a, b in edges)
    assert ranks["weight"] == ranks["c"] - 1


def test_ends_stand_in_rows_of_their_own() -> None:
    ranks = ranks_of("iabo", [("i", "b"), ("a", "b"), ("a", "o")], first=["i"], last=["o"])
    assert ranks == {"i": 0, "a": 1, "b": 2, "o": 3}


def test_a_cycle_and_an_unknown_node_are_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        layout({"a": 1.0, "b": 1.0}, [("a", "b"), ("b", "a")])
    with pytest.raises(ValueError, match="leads to no node"):
        layout({"a": 1.0}, [("a", "b")])


def test_the_order_of_rows_unties_what_can_be_untied() -> None:
    # Two rows of eight, linked one to one in a mixed order: a plane graph.
    mixed = [3, 7, 0, 5, 1, 6, 2, 4]
    edges = [(f"a{i}", f"b{k}") for i, k in enumerate(mixed)]
    nodes = [f"{r}{i}" for r in "ab" for i in range(8)]
    assert in_layers(nodes, edges, ranks_of(nodes, edges)).crossings() == 0


def test_crossings_are_counted() -> None:
    edges = list(itertools.product("ab", "xyz"))
    layers = in_layers("abxyz", edges, ranks_of("abxyz", edges))
    assert layers.crossings() == 3  # of a complete bipartite graph: C(2, 2) C(3, 2)


def test_places_are_the_closest_to_the_wishes() -> None:
    assert settled([5.0, 5.0], [1.0, 3.0], [8.0]) == [-1.0, 7.0]
    assert settled([0.0, 100.0], [1.0, 1.0], [8.0]) == [0.0, 100.0]


def test_a_chain_is_one_straight_line_beside_a_skip() -> None:
    names = "abcdef"
    edges = [*itertools.pairwise(names), ("a", "f")]
    placed = layout(dict.fromkeys(names, 60.0), edges)
    assert len({placed.middle[n] for n in names}) == 1
    assert len(set(placed.passes[-1])) == 1
    assert abs(placed.passes[-1][0] - placed.middle["b"]) >= 30


def test_widths_of_texts_are_those_of_the_table() -> None:
    assert width_of("i") < width_of("m")
    assert width_of("Linear", size=24) == pytest.approx(2 * width_of("Linear", size=12), abs=0.02)
    assert width_of("字") == pytest.approx(12.18)
    for limit in (20.0, 50.0, 200.0):
        assert width_of(shortened("a name of some length", limit)) <= limit
