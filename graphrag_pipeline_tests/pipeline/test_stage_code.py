from graphrag_pipeline.pipeline.stage_code import code_of
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.settings.settings import Settings


def test_new_rules_of_the_embedded_engine_leave_the_result_of_a_model_alone() -> None:
    stage = STAGES["extracted_graph"]
    assert code_of(stage, Settings())["rules"] == stage.rules > 0
    with_model = Settings.model_validate({"extraction": {"engine": "model"}, "chat_model": {"model": "m"}})
    assert "rules" not in code_of(stage, with_model)
