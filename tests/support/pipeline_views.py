"""The views by hand, under their old name; tests.kit.pipeline_views makes them."""

from __future__ import annotations

from tests.kit.pipeline_views import CHASING, CUT, NOW, pipeline, source, table, view

__all__ = ["CHASING", "CUT", "NOW", "pipeline", "source", "table", "view"]
