"""Layouts and tables of them."""

from __future__ import annotations

from situate.language.training.layout import Layout, LayoutTable


# Tables of layouts.
def test_a_table_holds_the_layouts_as_they_were():
    layouts = [Layout(dp=2, zero=3), Layout(tp=4, sp=True, recompute="full", offload=True, zero=1)]
    table = LayoutTable.of(layouts)
    assert [table.layout(i) for i in range(2)] == layouts
    assert len(table.rows(table.tp == 4)) == 1


def test_experts_have_replicas_of_their_own():
    table = LayoutTable.of([Layout(dp=4, tp=2, cp=2, ep=4)])
    assert (table.spread[0], table.expert_spread[0], table.copies[0]) == (8, 4, 1)
