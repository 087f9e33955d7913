from pathlib import Path

from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline_tests.support.roots import make_root


def test_new_rules_of_the_embedded_engine_leave_the_result_of_a_model_alone(tmp_path: Path) -> None:
    stage = STAGES["extracted_graph"]
    assert make_root(tmp_path).code_of(stage)["rules"] > 0
    with_model = make_root(tmp_path, settings="extraction: {engine: model}\nchat_model: {model: m}")
    assert "rules" not in with_model.code_of(stage)
